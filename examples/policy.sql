-- What two years of these rows come to:
--   ebb simulate --file examples/policy.sql --rate 20_000_000 --years 2 --svg policy.svg
CREATE DISK ssd disk(type = 'local', path = '/mnt/ssd/ebb', capacity_bytes = 20000000000);
CREATE DISK hdd disk(type = 'local', path = '/mnt/hdd/ebb', capacity_bytes = 200000000000);
CREATE DISK archive disk(type = 's3', endpoint = 'https://s3.example.com/archive/ebb', use_environment_credentials = true);

CREATE STORAGE POLICY tiered AS $$
volumes:
  hot:
    disk: ssd
  warm:
    disk: hdd
  cold:
    disk: archive
    prefer_not_to_merge: true
move_factor: 0.1
$$;

CREATE STREAM requests (
    ts     datetime64(3),
    host   low_cardinality(string),
    path   string,
    level  low_cardinality(string),
    ms     float64
)
PARTITION BY to_YYYYMMDD(ts)
ORDER BY (host, ts)
TTL ts + INTERVAL 7 DAY DELETE WHERE level = 'debug',
    ts + INTERVAL 14 DAY TO VOLUME 'warm',
    ts + INTERVAL 60 DAY RECOMPRESS CODEC(ZSTD(9)),
    ts + INTERVAL 90 DAY TO VOLUME 'cold',
    ts + INTERVAL 365 DAY
SETTINGS event_time_column = 'ts', storage_policy = 'tiered', merge_with_ttl_timeout = 86400;
