//! A newcomer's usual mistakes: each leads to the mend.

use super::Session;

fn session() -> Session {
    Session::of(&[
        "CREATE STREAM events (event_time TIMESTAMP, device STRING, temperature DOUBLE, txt STRING) USING memory",
        "CREATE TABLE devices (device STRING, site STRING)",
        "CREATE SINK out USING memory",
    ])
}

/// The condition, and whether some help holds the text.
fn leads_to(sql: &str, condition: &str, help: &str) {
    let errors = session().errors(sql);
    let d = errors.iter().find(|d| d.condition == condition).unwrap_or_else(|| panic!("{sql}: {errors:#?}"));
    assert!(d.primary.is_some(), "{sql}: no place");
    assert!(d.help.iter().any(|h| h.contains(help)), "{sql}: {:?}", d.help);
}

#[test]
fn misspelt_column() {
    leads_to("SELECT sitte FROM devices", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "`site`");
}

#[test]
fn misspelt_relation() {
    leads_to("SELECT site FROM device", "TABLE_OR_VIEW_NOT_FOUND", "`devices`");
}

#[test]
fn string_for_a_timestamp() {
    leads_to(
        "SELECT count(*) FROM events WATERMARK txt DELAY OF INTERVAL 1 MINUTE GROUP BY txt EMIT APPEND",
        "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE",
        "`event_time`",
    );
}

#[test]
fn missing_group_by_column() {
    leads_to("SELECT device, site, count(*) FROM devices GROUP BY device", "MISSING_AGGREGATION", "GROUP BY");
    leads_to("SELECT site, count(*) FROM devices", "MISSING_GROUP_BY", "GROUP BY site");
}

#[test]
fn aggregate_in_where() {
    leads_to("SELECT site FROM devices WHERE count(*) > 1 GROUP BY site", "INVALID_WHERE_CONDITION", "HAVING");
}

#[test]
fn tumble_on_a_string() {
    leads_to(
        "SELECT count(*) FROM events GROUP BY TUMBLE(txt, INTERVAL 5 MINUTES) EMIT UPDATE",
        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        "`event_time`",
    );
}

#[test]
fn hop_with_its_arguments_swapped() {
    leads_to(
        "SELECT count(*) FROM events GROUP BY HOP(event_time, INTERVAL 10 MINUTES, INTERVAL 5 MINUTES) EMIT UPDATE",
        "DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION",
        "swapped",
    );
}

#[test]
fn append_without_a_watermark() {
    leads_to(
        "INSERT INTO out SELECT device, count(*) AS n FROM events GROUP BY device EMIT APPEND",
        "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION",
        "WATERMARK",
    );
}

#[test]
fn a_stream_without_emit() {
    leads_to("SELECT device FROM events", "STREAMING_QUERY_WITHOUT_SINK", "EMIT APPEND");
    leads_to("INSERT INTO out SELECT device FROM devices EMIT APPEND", "WRITE_STREAM_NOT_ALLOWED", "stream");
}

#[test]
fn a_number_where_an_interval_is_due() {
    leads_to(
        "SELECT count(*) FROM events GROUP BY TUMBLE(event_time, 5) EMIT UPDATE",
        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
        "INTERVAL 5",
    );
}

#[test]
fn misspelt_option_and_value() {
    leads_to(
        "CREATE STREAM f (a INT) USING json LOCATION '/x' OPTIONS (maxFilePerTrigger 1)",
        "UNKNOWN_OPTION",
        "`maxFilesPerTrigger`",
    );
    leads_to(
        "CREATE STREAM f (a INT) USING json LOCATION '/x' OPTIONS (mode 'PERMISIVE')",
        "INVALID_OPTION_VALUE",
        "'PERMISSIVE'",
    );
    leads_to("CREATE STREAM f (a INT) USING jsn LOCATION '/x'", "DATA_SOURCE_NOT_FOUND", "`json`");
    leads_to("CREATE STREAM f (a INT) USING json", "MISSING_LOCATION", "LOCATION");
    leads_to("CREATE STREAM f USING json LOCATION '/x'", "UNABLE_TO_INFER_SCHEMA", "List them");
}

#[test]
fn several_mistakes_are_told_at_once() {
    let conditions = session().conditions("SELECT sitte, devce, no_such(site) FROM devices WHERE nope = 1");
    assert_eq!(conditions.len(), 4, "{conditions:?}");
}

#[test]
fn what_is_not_executed_says_so_by_name() {
    let errors =
        session().errors("MERGE INTO devices t USING devices s ON t.device = s.device WHEN MATCHED THEN DELETE");
    assert!(errors[0].message.contains("MERGE INTO"));
}
