use super::*;
use crate::{
    Timestamp,
    ids::{BranchId, SchemaVersion, Sn, StreamId},
    log::{
        reader::{inspect, replay},
        record::{RecordHeader, Verb},
    },
    testkit::{CrashDisk, Cut, FaultLog, Unsynced},
};
use std::io;

fn db() -> DatabaseId {
    DatabaseId("test".into())
}

fn record(n: u64) -> Record {
    let header = RecordHeader {
        stream: StreamId(1),
        sn: Sn(n),
        branch: BranchId::MAIN,
        verb: Verb::Insert,
        schema_version: SchemaVersion(1),
        time: Timestamp(7),
        key: None,
    };
    Record { header, body: vec![n as u8; 20].into() }
}

fn read(dir: &dyn LogDir, applied: Lsn) -> Result<(Replayed, Vec<(Lsn, Sn)>)> {
    let mut seen = Vec::new();
    let replayed = replay(dir, &db(), applied, |lsn, r| {
        seen.push((lsn, r.header.sn));
        Ok(())
    })?;
    Ok((replayed, seen))
}

fn open(dir: Arc<dyn LogDir>, epoch: u32, limits: Limits) -> Result<LogWriter<u64>> {
    let (replayed, _) = read(&*dir, Lsn(0))?;
    LogWriter::start(StartLog { dir, database: db(), epoch: Epoch(epoch), replayed, limits }, |_| {})
}

/// A new file every few records.
fn small() -> Limits {
    Limits { file_bytes: 150, ..Limits::default() }
}

/// Two openings, a few appends each; returns the acknowledged sns. Stops at the first failure.
fn scenario(disk: &CrashDisk) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    for epoch in 1..=2 {
        let Ok(log) = open(disk.log(), epoch, small()) else { break };
        for n in 0..5 {
            let sn = u64::from(epoch) * 100 + n;
            if log.append(&[record(sn)], sn).and_then(Ticket::wait).is_ok() {
                acknowledged.push(sn);
            }
        }
        let _ = log.close();
    }
    acknowledged
}

#[test]
fn acknowledged_records_survive_a_cut_at_every_call_exactly_once() {
    let whole = CrashDisk::default();
    assert_eq!(scenario(&whole).len(), 10);
    for k in 1..=whole.power.calls() {
        for cut in [Cut::NotApplied, Cut::AppliedNotAcknowledged] {
            for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
                let disk = CrashDisk::default();
                disk.power.cut_at(k, cut);
                let acknowledged = scenario(&disk);
                let after = disk.reopen(unsynced);
                // A second cut during recovery, at each of its calls.
                for again in 1.. {
                    let trial = after.reopen(Unsynced::Lost);
                    trial.power.cut_at(again, cut);
                    let recovered = open(trial.log(), 3, small()).map(|log| log.close());
                    let was_cut = trial.power.is_off();
                    drop(recovered);
                    let last = trial.reopen(unsynced);
                    let (replayed, seen) = read(&*last.log(), Lsn(0)).unwrap_or_else(|e| panic!("{k} {cut:?} {unsynced:?} {again}: {e}"));
                    let sns: Vec<u64> = seen.iter().map(|(_, sn)| sn.0).collect();
                    let lsns: Vec<u64> = seen.iter().map(|(lsn, _)| lsn.0).collect();
                    assert_eq!(lsns, (1..=seen.len() as u64).collect::<Vec<_>>(), "dense");
                    assert_eq!(replayed.next_lsn, Lsn(seen.len() as u64 + 1));
                    for sn in &acknowledged {
                        assert_eq!(sns.iter().filter(|s| *s == sn).count(), 1, "{k} {cut:?} {unsynced:?} {again}: {sn}");
                    }
                    if !was_cut {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_never_taken_for_data() {
    let disk = CrashDisk::default();
    let log = open(disk.log(), 1, Limits::default()).unwrap();
    for n in 1..=4 {
        log.append(&[record(n)], n).unwrap().wait().unwrap();
    }
    log.close().unwrap();
    let name = disk.log().list().unwrap().remove(0);
    let bytes = disk.log().open(&name).unwrap().read_all().unwrap();
    for i in 0..bytes.len() {
        let damaged = disk.reopen(Unsynced::Lost);
        damaged.edit_file(&name, |b| b[i] ^= 1 << (i % 8));
        let report = inspect(&*damaged.log(), &db(), Lsn(0)).unwrap();
        assert!(report.findings.iter().any(|f| f.file == name), "byte {i} goes unnoticed");
        match read(&*damaged.log(), Lsn(0)) {
            Ok((replayed, seen)) => {
                assert!(report.is_sound());
                assert!(replayed.torn.is_some_and(|t| t.bytes > 0), "byte {i}");
                assert_eq!(seen, (1..=3).map(|n| (Lsn(n), Sn(n))).collect::<Vec<_>>(), "only the last frame may pass for torn");
            }
            Err(e) => {
                assert!(!report.is_sound());
                assert!(e.kind() == ErrorKind::Corrupt && e.message().contains(&name), "byte {i}: {e}");
            }
        }
    }
}

#[test]
fn a_superseded_writer_cannot_add() {
    let disk = CrashDisk::default();
    let old = open(disk.log(), 1, Limits::default()).unwrap();
    old.append(&[record(1)], 1).unwrap().wait().unwrap();
    let new = open(disk.log(), 2, Limits::default()).unwrap();
    old.append(&[record(66)], 2).unwrap().wait().unwrap();
    new.append(&[record(2)], 2).unwrap().wait().unwrap();
    let (_, seen) = read(&*disk.log(), Lsn(0)).unwrap();
    assert_eq!(seen, [(Lsn(1), Sn(1)), (Lsn(2), Sn(2))]);
    let stale = open(disk.log(), 2, Limits::default()).err().unwrap();
    assert_eq!(stale.kind(), ErrorKind::Fenced);
}

#[test]
fn a_full_disk_fails_its_waiters_only_and_leaves_nothing_behind() {
    let disk = CrashDisk::default();
    let faults = FaultLog::over(disk.log());
    let log = open(Arc::new(faults.clone()), 1, Limits::default()).unwrap();
    log.append(&[record(1)], 1).unwrap().wait().unwrap();
    faults.fail_write(io::ErrorKind::StorageFull);
    assert_eq!(log.append(&[record(2)], 2).unwrap().wait().unwrap_err().kind(), ErrorKind::Full);
    // What was numbered to follow the failed record is refused until its caller has numbered anew.
    assert!(log.is_halted());
    assert_eq!(log.append(&[record(3)], 3).map(|_| ()).unwrap_err().kind(), ErrorKind::Full);
    assert!(log.resume() && !log.is_halted() && !log.resume());
    assert_eq!(log.append(&[record(3)], 3).unwrap().wait().unwrap(), Lsn(2));
    assert!(log.poisoned().is_none());
    drop(log);
    assert_eq!(read(&*disk.log(), Lsn(0)).unwrap().1, [(Lsn(1), Sn(1)), (Lsn(2), Sn(3))]);
}

#[test]
fn what_cannot_be_undone_or_synced_poisons() {
    for fault in ["truncate", "sync", "write"] {
        let faults = FaultLog::over(CrashDisk::default().log());
        let log = open(Arc::new(faults.clone()), 1, Limits::default()).unwrap();
        match fault {
            "truncate" => {
                faults.fail_write(io::ErrorKind::StorageFull);
                faults.fail_truncate(io::ErrorKind::Other);
            }
            "sync" => faults.fail_sync(io::ErrorKind::StorageFull),
            _ => faults.fail_write(io::ErrorKind::Other),
        }
        assert_eq!(log.append(&[record(1)], 1).unwrap().wait().unwrap_err().kind(), ErrorKind::Unavailable, "{fault}");
        assert!(log.append(&[record(2)], 2).is_err());
        assert!(log.close().is_err());
    }
}

#[test]
fn trimming_keeps_what_is_not_applied() {
    let disk = CrashDisk::default();
    let log = open(disk.log(), 1, small()).unwrap();
    for n in 1..=9 {
        log.append(&[record(n)], n).unwrap().wait().unwrap();
    }
    let before = log.files().len();
    let removed = log.trim(Lsn(5)).unwrap();
    assert!(removed > 0 && log.files().len() == before - removed as usize);
    drop(log);
    let (replayed, seen) = read(&*disk.log(), Lsn(5)).unwrap();
    assert_eq!(seen, (6..=9).map(|n| (Lsn(n), Sn(n))).collect::<Vec<_>>());
    assert_eq!(replayed.next_lsn, Lsn(10));
    assert_eq!(read(&*disk.log(), Lsn(0)).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// A folder in which a removal waits until it is let go on.
#[derive(Debug)]
struct SlowRemovals(Arc<dyn LogDir>, Mutex<std::sync::mpsc::Sender<()>>, Mutex<std::sync::mpsc::Receiver<()>>);

impl LogDir for SlowRemovals {
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.0.create(name)
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        self.0.open(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        let _ = self.1.lock().send(());
        let _ = self.2.lock().recv();
        self.0.remove(name)
    }
}

#[test]
fn nobody_who_writes_waits_for_a_removal() {
    let disk = CrashDisk::default();
    let ((begun, is_begun), (go_on, may_go_on)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let dir = SlowRemovals(disk.log(), Mutex::new(begun), Mutex::new(may_go_on));
    let log = open(Arc::new(dir), 1, small()).unwrap();
    for n in 1..=9 {
        log.append(&[record(n)], n).unwrap().wait().unwrap();
    }
    let before = log.files().len();
    std::thread::scope(|s| {
        let trimming = s.spawn(|| log.trim(Lsn(5)));
        is_begun.recv().unwrap();
        // Files are begun meanwhile too.
        for n in 10..=15 {
            log.append(&[record(n)], n).unwrap().wait().unwrap();
        }
        assert!(log.files().len() > before, "what is not removed yet is listed");
        drop(go_on);
        assert!(trimming.join().unwrap().unwrap() > 0);
    });
    drop(log);
    assert_eq!(read(&*disk.log(), Lsn(5)).unwrap().1.len(), 10);
}
