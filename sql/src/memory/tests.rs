use super::{growth::Makes, held::Held, pool::machine_share, spill::FOLDER, *};
use arrow::array::{Array, ArrayRef, Int64Array, StringArray, StringViewArray};
use datafusion::{
    common::{ScalarValue, config::ConfigOptions},
    execution::memory_pool::{MemoryConsumer, MemoryPool},
    functions_aggregate::array_agg::ArrayAggAccumulator,
    logical_expr::{Accumulator, ColumnarValue},
};
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn pool(bytes: usize) -> Arc<dyn MemoryPool> {
    Arc::new(Pool::new(bytes as u64))
}

/// proves Q1
#[test]
fn reservations_never_exceed_the_limit_and_leave_a_share_free() {
    let pool = pool(16 * MIB);
    let spiller = |name: &str| MemoryConsumer::new(name).with_can_spill(true).register(&pool);
    let (a, b) = (spiller("a"), spiller("b"));
    assert!(a.try_grow(6 * MIB).is_err(), "two, and a share is left for a third");
    a.try_grow(5 * MIB).unwrap();
    b.try_grow(5 * MIB).unwrap();
    let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
    assert!(merge.try_grow(6 * MIB).is_err(), "a share is enough for a merge");
    merge.try_grow(2 * MIB).unwrap();
    let fixed = MemoryConsumer::new("fixed").register(&pool);
    let refused = fixed.try_grow(4 * MIB + 1).unwrap_err().to_string();
    assert!(refused.contains("memory_limit_bytes"), "{refused}");
    fixed.try_grow(4 * MIB).unwrap();
    assert!(spiller("c").try_grow(1).is_err(), "nothing is left");
    assert_eq!(pool.reserved(), 16 * MIB);
    drop((a, fixed));
    assert_eq!(pool.reserved(), 7 * MIB);
}

#[test]
fn what_can_spill_does_so_before_values_of_functions_find_no_room() {
    let pool = pool(16 * MIB);
    let values = MemoryConsumer::new(super::pool::VALUES).register(&pool);
    let sorter = MemoryConsumer::new("sorter").with_can_spill(true).register(&pool);
    // A sorter that keeps values which are counted as values too.
    for _ in 0..1000 {
        values.try_grow(MIB / 4).unwrap();
        if sorter.try_grow(MIB / 2).is_err() {
            sorter.free();
            values.free();
        }
    }
}

#[test]
fn a_new_limit_holds_at_once() {
    let pool = Pool::new(MIB as u64);
    let shared: Arc<dyn MemoryPool> = Arc::new(pool.clone());
    let one = MemoryConsumer::new("one").register(&shared);
    assert!(one.try_grow(2 * MIB).is_err());
    pool.set_limit(4 * MIB as u64);
    one.try_grow(2 * MIB).unwrap();
    pool.set_limit(MIB as u64);
    assert!(one.try_grow(1).is_err());
    pool.set_limit(0);
    assert_eq!(pool.limit(), machine_share());
}

#[test]
fn little_memory_makes_small_batches() {
    let mut options = ConfigOptions::default();
    fit(&mut options, 24_000_000);
    assert!((64..2000).contains(&options.execution.batch_size.get()), "{}", options.execution.batch_size);
    assert!(options.execution.sort_spill_reservation_bytes < MIB);
    fit(&mut options, 8 << 30);
    assert_eq!(options.execution.batch_size.get(), 8192);
    assert_eq!(options.execution.sort_spill_reservation_bytes, 10 * MIB);
}

fn texts(values: &[&str]) -> ColumnarValue {
    ColumnarValue::Array(Arc::new(StringArray::from(values.to_vec())))
}

fn text(value: &str) -> ColumnarValue {
    ColumnarValue::Scalar(ScalarValue::Utf8View(Some(value.to_owned())))
}

fn number(n: i64) -> ColumnarValue {
    ColumnarValue::Scalar(ScalarValue::Int64(Some(n)))
}

#[test]
fn what_a_function_makes_is_known_before() {
    let made = |makes: Makes, args: &[ColumnarValue], rows: usize| {
        let made = makes.of(args, rows);
        (made.longest, made.total)
    };
    assert_eq!(made(Makes::Copies, &[texts(&["ab", "c", ""]), number(5)], 3), (10, 15));
    assert_eq!(made(Makes::Copies, &[texts(&["ab"]), number(-5)], 1), (0, 0));
    let times = ColumnarValue::Array(Arc::new(Int64Array::from(vec![Some(i64::MAX), None])));
    assert_eq!(made(Makes::Copies, &[texts(&["ab", "c"]), times], 2), (2 * (usize::MAX / 2), 2 * (usize::MAX / 2)));
    assert_eq!(made(Makes::Padding, &[texts(&["ab"]), number(7)], 1), (7, 7));
    assert_eq!(made(Makes::Padding, &[texts(&["ab"]), number(7), text("é")], 1), (28, 28));
    assert_eq!(made(Makes::Replacements, &[texts(&["aab"]), text("a"), text("xyz")], 1), (9, 9), "a bound");
    let long = "a".repeat(MIB) + "b";
    assert_eq!(made(Makes::Replacements, &[text(&long), text("b"), text("xyz")], 5), (MIB + 3, MIB + 3), "counted, once for a constant");
    assert_eq!(made(Makes::Separated, &[text("--"), texts(&["a"]), text("b"), text("c")], 1), (7, 7));
    assert_eq!(made(Makes::All, &[text("abc"), texts(&["d", "e"])], 2).1, 2 * 3 + 2 + 3 * 4, "the array's offsets count too");
    assert_eq!(made(Makes::Elements, &[number(1), number(1000)], 1).0, 1000 * ScalarValue::Int64(Some(1)).size());
    assert!(made(Makes::Series, &[number(0), number(i64::MAX)], 1).0 > usize::MAX / 4);
    assert!(made(Makes::Matches, &[text("aaaa"), text("a"), text("xx\\1"), text("g")], 1).0 >= 12);
    assert_eq!(made(Makes::Twice, &[text("abc"), text("hex")], 1), (6, 6));
}

/// proves Q1
#[test]
fn texts_of_views_are_counted_in_full_and_kept_alone() {
    let mut held = Held::new(Box::new(ArrayAggAccumulator::try_new(&arrow::datatypes::DataType::Utf8View, false).unwrap()));
    let all: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..1000).map(|i| format!("{i:01000}"))));
    held.update_batch(std::slice::from_ref(&all)).unwrap();
    assert!(held.size() > 2 * 1000 * 1000, "{}", held.size());
    // A few rows of a large batch do not keep it.
    let mut few = Held::new(Box::new(ArrayAggAccumulator::try_new(&arrow::datatypes::DataType::Utf8View, false).unwrap()));
    few.update_batch(&[all.slice(0, 3)]).unwrap();
    let ScalarValue::List(list) = few.evaluate().unwrap() else { panic!("no list") };
    assert!(list.get_buffer_memory_size() < 100_000, "{}", list.get_buffer_memory_size());
    assert!(few.size() < 100_000, "{}", few.size());
}

#[test]
fn the_folder_for_spilled_rows_is_emptied() {
    let dir = tempfile::tempdir().unwrap();
    let folder = emptied(dir.path()).unwrap();
    assert_eq!(folder, dir.path().join(FOLDER));
    std::fs::create_dir(folder.join("left")).unwrap();
    std::fs::write(folder.join("left/behind"), "x").unwrap();
    emptied(dir.path()).unwrap();
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}
