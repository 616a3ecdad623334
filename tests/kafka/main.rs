//! Kafka as a source, a table and a sink, against a real broker that `tests/services/kafka` starts.
#![allow(clippy::unwrap_used, missing_docs)]

mod broker;

use std::time::{Duration, Instant};

use broker::{Broker, Dir};

/// Rows of JSON that a query over a table prints, sorted.
fn rows(dir: &Dir, script: &str) -> Vec<String> {
    let output = dir.run(script, &["--format", "ndjson"]);
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    let mut rows: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect();
    rows.sort();
    rows
}

fn failure(dir: &Dir, script: &str) -> String {
    let output = dir.run(script, &[]);
    assert!(!output.status.success(), "{script} should fail");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Writes `from..to` as values `{"id": n}` with the key `k<n>`, over the sink under test.
fn produce(dir: &Dir, broker: &Broker, topic: &str, from: u64, to: u64) {
    let name = format!("feed_{topic}_{from}");
    let lines: String = (from..to).map(|n| format!("{{\"id\":{n}}}\n")).collect();
    std::fs::create_dir_all(dir.path(&name)).unwrap();
    std::fs::write(dir.path(&name).join("rows.json"), lines).unwrap();
    let script = format!(
        "CREATE STREAM feed (id BIGINT) USING json LOCATION '{name}';
         CREATE SINK out USING kafka OPTIONS (kafka.bootstrap.servers '{broker}', topic '{topic}');
         INSERT INTO out SELECT concat('k', id) AS key, to_json(struct(id)) AS value FROM feed EMIT APPEND
         TRIGGER AVAILABLE NOW CHECKPOINT LOCATION '{name}_checkpoint';"
    );
    let output = dir.run(&script, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A stream of the topic into files, as far as there is something.
fn copy_script(broker: &Broker, options: &str, trigger: &str) -> String {
    format!(
        "CREATE STREAM s (id BIGINT, _kafka_partition INT, _kafka_offset BIGINT) USING kafka
         OPTIONS (kafka.bootstrap.servers '{broker}', format 'json', {options});
         CREATE SINK out USING json LOCATION 'out';
         INSERT INTO out SELECT id, _kafka_partition AS p, _kafka_offset AS o FROM s EMIT APPEND
         TRIGGER {trigger} CHECKPOINT LOCATION 'checkpoint';"
    )
}

fn ids(dir: &Dir) -> Vec<u64> {
    let mut ids: Vec<u64> = dir
        .lines("out")
        .iter()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["id"].as_u64().unwrap()
        })
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn spark_columns_and_bounds_of_a_table() {
    let broker = Broker::start();
    let dir = Dir::new();
    broker.create("t", 1, &[]);
    produce(&dir, &broker, "t", 0, 10);
    let table = |options: &str, query: &str| {
        format!("CREATE TABLE t USING kafka OPTIONS (kafka.bootstrap.servers '{broker}'{options});\n{query};")
    };
    let all = rows(
        &dir,
        &table(
            ", subscribe 't', includeHeaders true",
            "SELECT CAST(key AS STRING) AS k, CAST(value AS STRING) AS v, topic, partition, offset, timestampType AS tt,
             timestamp > TIMESTAMP '2020-01-01 00:00:00' AS young, headers FROM t WHERE offset = 3",
        ),
    );
    assert_eq!(all.len(), 1, "{all:?}");
    for part in
        [r#""k":"k3""#, r#""v":"{\"id\":3}""#, r#""topic":"t""#, r#""partition":0"#, r#""tt":0"#, r#""young":true"#]
    {
        assert!(all[0].contains(part), "{part} in {}", all[0]);
    }
    let count = "SELECT count(*) AS n, min(offset) AS a, max(offset) AS b FROM t";
    let bounds = [
        (", subscribePattern 't.*'", "10,0,9"),
        (r#", assign '{"t":[0]}', startingOffsets '{"t":{"0":4}}', endingOffsets '{"t":{"0":6}}'"#, "2,4,5"),
        (r#", subscribe 't', startingOffsets '{"t":{"0":-2}}', endingOffsets '{"t":{"0":-1}}'"#, "10,0,9"),
        (", subscribe 't', startingTimestamp 1000", "10,0,9"),
        (r#", subscribe 't', endingOffsetsByTimestamp '{"t":{"0":9999999999999}}'"#, "10,0,9"),
    ];
    for (options, expected) in bounds {
        let output = dir.run(&table(options, count), &["--format", "csv"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().nth(1), Some(expected), "{options}: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
    let told = failure(&dir, &table(", subscribe 't', startingTimestamp 9999999999999", count));
    assert!(told.contains("has no message of the starting time"), "{told}");
    let told = failure(&dir, &table(r#", subscribe 't', startingOffsets '{"t":{"1":4}}'"#, count));
    assert!(told.contains("there are [t-0], given are [t-1]"), "{told}");
    let told = failure(&dir, &table(", subscribe 'absent'", count));
    assert!(told.contains("there is no topic `absent`"), "{told}");
    // A secret shows nowhere, not even where it is refused.
    let told = failure(
        &dir,
        &table(
            ", subscribe 't', kafka.ssl.key.password 'hunter2', kafka.ssl.key.pem 'hunter2', kafka.security.protocol 'ssl'",
            count,
        ),
    );
    assert!(!told.contains("hunter2"), "{told}");
    let told = failure(&dir, &table(", subscribe 't', kafka.sasl.jaas.config 'hunter2'", count));
    assert!(told.contains("kafka.sasl.username") && !told.contains("hunter2"), "{told}");
}

#[test]
fn a_stream_goes_on_where_it_was_meets_new_partitions_and_is_limited() {
    let broker = Broker::start();
    let dir = Dir::new();
    broker.create("t", 1, &[]);
    produce(&dir, &broker, "t", 0, 100);
    let script = copy_script(
        &broker,
        "subscribe 't', startingOffsets 'earliest', maxOffsetsPerTrigger 30, kafka.max.poll.records 5",
        "AVAILABLE NOW",
    );
    let output = dir.run(&script, &["--progress-log", "progress"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(ids(&dir), (0..100).collect::<Vec<_>>());
    let progress = std::fs::read_to_string(dir.path("progress")).unwrap();
    let batches: Vec<serde_json::Value> = progress.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(batches.len(), 4, "{progress}");
    let source = &batches[0]["sources"][0];
    assert_eq!(source["description"], "KafkaV2[Subscribe[t]]");
    assert_eq!(source["endOffset"]["t"]["0"], 30);
    assert_eq!(source["latestOffset"]["t"]["0"], 100);
    assert_eq!(source["metrics"]["maxOffsetsBehindLatest"], "70");
    assert_eq!(source["metrics"]["avgOffsetsBehindLatest"], "70.0");

    broker.tool("org.apache.kafka.tools.TopicCommand", &["--alter", "--topic", "t", "--partitions", "3"]);
    produce(&dir, &broker, "t", 100, 200);
    assert!(dir.run(&script, &[]).status.success());
    assert_eq!(ids(&dir), (0..200).collect::<Vec<_>>());
}

#[test]
fn latest_is_kept_from_the_first_batch_on() {
    let broker = Broker::start();
    let dir = Dir::new();
    broker.create("t", 2, &[]);
    produce(&dir, &broker, "t", 0, 10);
    let script = copy_script(&broker, "subscribe 't'", "AVAILABLE NOW");
    assert!(dir.run(&script, &[]).status.success());
    assert_eq!(ids(&dir), Vec::<u64>::new());
    produce(&dir, &broker, "t", 10, 20);
    assert!(dir.run(&script, &[]).status.success());
    assert_eq!(ids(&dir), (10..20).collect::<Vec<_>>());
}

#[test]
fn deleted_offsets_are_named_or_passed_over() {
    let broker = Broker::start();
    let dir = Dir::new();
    broker.create("t", 1, &[]);
    produce(&dir, &broker, "t", 0, 10);
    let strict = copy_script(&broker, "subscribe 't', startingOffsets 'earliest'", "AVAILABLE NOW");
    assert!(dir.run(&strict, &[]).status.success());
    produce(&dir, &broker, "t", 10, 30);
    broker.delete_before("t", 0, 25);
    let told = failure(&dir, &strict);
    assert!(told.contains("KAFKA_DATA_LOSS"), "{told}");
    assert!(told.contains("topic t partition 0 offsets 10 to 24"), "{told}");
    let lenient =
        copy_script(&broker, "subscribe 't', startingOffsets 'earliest', failOnDataLoss false", "AVAILABLE NOW");
    let output = dir.run(&lenient, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(ids(&dir), (0..10).chain(25..30).collect::<Vec<_>>());
}

#[test]
fn gaps_of_compaction_and_transactions_are_no_loss() {
    let broker = Broker::start();
    let dir = Dir::new();
    let compact =
        ["cleanup.policy=compact", "segment.ms=200", "min.cleanable.dirty.ratio=0.001", "max.compaction.lag.ms=200"];
    broker.create("c", 1, &compact);
    // The same keys again and again: only the last value of each stays.
    for _ in 0..3 {
        dir.forget("feed_c_0");
        produce(&dir, &broker, "c", 0, 20);
        std::thread::sleep(Duration::from_millis(300));
    }
    let count = format!(
        "CREATE TABLE c USING kafka OPTIONS (kafka.bootstrap.servers '{broker}', subscribe 'c');
         SELECT count(*) AS n FROM c;"
    );
    let deadline = Instant::now() + Duration::from_secs(40);
    let mut from = 1000;
    loop {
        let n = rows(&dir, &count);
        let n: u64 = n[0].chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
        if n < 60 + (from - 1000) {
            break;
        }
        assert!(Instant::now() < deadline, "the broker did not compact: {n} messages");
        // A new message makes the broker close the segment before.
        produce(&dir, &broker, "c", from, from + 1);
        from += 1;
    }
    let script = copy_script(&broker, "subscribe 'c', startingOffsets 'earliest'", "AVAILABLE NOW");
    let output = dir.run(&script, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut read = ids(&dir);
    read.dedup();
    assert_eq!(read, (0..20).chain(1000..from).collect::<Vec<_>>());
}

/// Messages by `ssql` into Kafka, each micro-batch a transaction, with kills and restarts of both sides.
#[test]
fn exactly_once_over_kills_and_a_broker_restart() {
    let mut broker = Broker::start();
    let dir = Dir::new();
    broker.create("in", 2, &[]);
    broker.create("out", 2, &[]);
    let total = 600;
    produce(&dir, &broker, "in", 0, total);
    let script = format!(
        "CREATE STREAM s (id BIGINT) USING kafka OPTIONS (kafka.bootstrap.servers '{broker}', format 'json',
         subscribe 'in', startingOffsets 'earliest', maxOffsetsPerTrigger 20);
         CREATE SINK out USING kafka OPTIONS (kafka.bootstrap.servers '{broker}', topic 'out', deliveryGuarantee 'exactly-once');
         INSERT INTO out SELECT to_json(struct(id)) AS value FROM s EMIT APPEND
         TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'checkpoint';"
    );
    for kill in 0..6 {
        let mut child = dir.spawn(&script);
        std::thread::sleep(Duration::from_millis(300 + 170 * kill));
        if kill == 3 {
            broker.stop("kill");
            broker.again();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = dir.run(&script, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = |isolation: &str, query: &str| {
        rows(
            &dir,
            &format!(
                "CREATE TABLE o (id BIGINT) USING kafka OPTIONS (kafka.bootstrap.servers '{broker}', format 'json',
                 subscribe 'out', kafka.isolation.level '{isolation}');\n{query};"
            ),
        )
    };
    let once =
        table("read_committed", "SELECT count(*) AS n, count(DISTINCT id) AS d, min(id) AS a, max(id) AS b FROM o");
    assert_eq!(once, [format!(r#"{{"n":{total},"d":{total},"a":0,"b":{}}}"#, total - 1)]);
}

/// A query that runs while its broker goes away and comes back, and is itself killed: nothing is lost.
#[test]
fn a_running_query_survives_a_broker_restart() {
    let mut broker = Broker::start();
    let dir = Dir::new();
    broker.create("t", 2, &[]);
    produce(&dir, &broker, "t", 0, 50);
    let script =
        copy_script(&broker, "subscribe 't', startingOffsets 'earliest'", "PROCESSING TIME INTERVAL 100 MILLISECONDS");
    let mut child = dir.spawn(&script);
    dir.wait(|| ids(&dir).len() == 50, "the first messages");
    broker.stop("");
    std::thread::sleep(Duration::from_millis(500));
    broker.again();
    produce(&dir, &broker, "t", 50, 100);
    dir.wait(|| ids(&dir).len() == 100, "messages after the restart of the broker");
    child.kill().unwrap();
    child.wait().unwrap();
    produce(&dir, &broker, "t", 100, 120);
    let mut child = dir.spawn(&script);
    dir.wait(|| ids(&dir).len() == 120, "messages after the restart of the query");
    assert_eq!(ids(&dir), (0..120).collect::<Vec<_>>());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_sink_takes_topic_key_headers_and_partition_from_columns() {
    let broker = Broker::start();
    let dir = Dir::new();
    broker.create("a", 2, &[]);
    broker.create("b", 2, &[]);
    std::fs::create_dir(dir.path("in")).unwrap();
    std::fs::write(dir.path("in/x.json"), "{\"t\":\"a\",\"p\":1,\"v\":\"x\"}\n{\"t\":\"b\",\"p\":0}\n").unwrap();
    let write = |columns: &str| {
        format!(
            "CREATE STREAM s (t STRING, p INT, v STRING) USING json LOCATION 'in';
             CREATE SINK out USING kafka OPTIONS (kafka.bootstrap.servers '{broker}');
             INSERT INTO out SELECT {columns} FROM s EMIT APPEND TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'checkpoint';"
        )
    };
    let output = dir.run(
        &write("t AS topic, p AS partition, v AS value, t AS key, array(struct('h' AS key, CAST(t AS BINARY) AS value)) AS headers"),
        &[],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = rows(
        &dir,
        &format!(
            "CREATE TABLE t USING kafka OPTIONS (kafka.bootstrap.servers '{broker}', subscribe 'a,b', includeHeaders true);
             SELECT topic, partition AS p, CAST(key AS STRING) AS k, CAST(value AS STRING) AS v, headers[0].key AS hk,
             CAST(headers[0].value AS STRING) AS hv FROM t;"
        ),
    );
    assert_eq!(
        read,
        [
            r#"{"topic":"a","p":1,"k":"a","v":"x","hk":"h","hv":"a"}"#,
            r#"{"topic":"b","p":0,"k":"b","v":null,"hk":"h","hv":"b"}"#
        ]
    );
    for (columns, told) in [
        ("v AS text", "needs a column `value`"),
        ("p AS value", "`value` of a Kafka sink is STRING or BINARY, not INT"),
        ("v AS value", "the option `topic` or a column `topic`"),
    ] {
        let message = failure(&dir, &write(columns));
        assert!(message.contains(told), "{message}");
    }
}
