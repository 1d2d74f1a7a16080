"""What the servers' own tests showed: lines of `docs/coverage.md`, with counts of runs in `tests/fuzz`."""

from __future__ import annotations

RESULTS = (
    "`python -m tests.fuzz.recorded` compares recorded binlogs with the server's `mysqlbinlog`, value by "
    "value, and each table",
    "map with the definition that the statements before it have led to. On 2026-11-26, binlogs and relay "
    "logs that servers",
    "wrote with `binlog_row_metadata=FULL` while they ran their own test suites (`mysql-testsuite` 9.7.4, "
    "`mariadb-test`",
    "10.11.18 and 11.8.9):",
    "",
    "| suites | binlogs | rows | values | table maps compared |",
    "| --- | --: | --: | --: | --: |",
    "| MySQL: main, innodb, json, gis, gcol, parts, collations, funcs_2 | 579 | 4,427,305 | 13,826,051 "
    "| 334,425 |",
    "| MySQL: most of the suites binlog, binlog_gtid, binlog_nogtid, rpl, rpl_gtid, rpl_nogtid | 2,097 "
    "| 1,859,464 | 3,804,160 | 125,146 |",
    "| MariaDB: main, rpl, binlog, versioning, vcol, period, innodb, parts and others | 6,121 | "
    "5,024,227 | 10,230,794 | 249,016 |",
    "| MySQL, with `binlog_transaction_compression`, PARTIAL_JSON and `binlog_row_image=MINIMAL`, binlogs "
    "alone: 860 tests of rpl, 197 of rpl_gtid, 105 of binlog and binlog_gtid, 67 of main and innodb | 2,861 "
    "| 1,318,420 | 1,607,894 | 158,996 |",
    "| MariaDB 10.11, with `log_bin_compress` and `binlog_row_image=MINIMAL`, binlogs alone: 349 tests of "
    "rpl, 66 of main, 63 of versioning, 49 of innodb, 41 of binlog, 20 of period, parts and vcol | 2,183 "
    "| 2,271,502 | 3,328,709 | 82,555 |",
    "| MariaDB, with `log_bin_compress` and `binlog_row_image=MINIMAL`: versioning, vcol, period, gcol,"
    " parts, most of main | 286 | 3,199,609 | 6,474,714 | 64,726 |",
    "",
    "What differed, and what came of it:",
    "",
    "| difference | |",
    "| --- | --- |",
    "| an `IndexError` at the 1,025th table definition of a run | fixed; "
    "`test_batching.py::test_a_stream_of_thousands_of_tables` |",
    "| MariaDB and MySQL 5.6: all columns of an outer joined table can be NULL in its table map, so the"
    " run stopped | fixed; `test_outer_joins.py` |",
    "| text in collations that an administrator added | fixed; `test_collations.py` |",
    "| MariaDB: decimals of MySQL 4 count among the numbers of a table map, so it was refused as "
    "damaged | fixed: such columns are refused by name; `test_table_map.py` |",
    "| MySQL 9.7: `utf8` in a definition is utf8mb4 where sql_mode has INTERPRET_UTF8_AS_UTF8MB4, and its "
    "columns did not fit (MariaDB's `old_mode` can do the same) | fixed; `test_ddl_listed.py`, "
    "`test_utf8_alias.py` |",
    "| MariaDB: a unique key in a database whose character set is not known had a hash column that the "
    "table does not have | fixed: it is not certain; `test_rare_definitions.py` |",
    "| differences of JSON documents, for which the tool prints a function of the old document | the engine "
    "has the new document, or the differences (`docs/events.md`) |",
    "| values that contain the tool's own notation, such as the text of a binlog | the comparison cannot "
    "take apart what the tool prints |",
    "| a unique key that is too long for the default storage engine, which no binlog contains | the "
    "catalog is asked, or the table map's names count |",
    "| characters that the server shows as `?`, or that have two codes | the engine's text is what "
    "SELECT shows; the tool prints bytes |",
    "| rows with geometries, and those of a relay log that begins inside a transaction | the tool prints no "
    "geometries; relay logs are not an input of the engine |",
    "| tables in the temporal formats of MariaDB 5.3 to 10.0 | without their CREATE TABLE no file has "
    "the digits; the tool cannot read them, either |",
    "",
    "`python -m tests.fuzz.suite` executes the statements in such tests on any server, and compares the",
    "model with its `information_schema` after each, also after those that no row event follows. On",
    "2026-11-27, with files of `mariadb-test-data` 10.11.19, on 2026-11-28, with those of main, innodb, rpl",
    "and most other suites of `mysql-testsuite` 9.7.4 (its own), and with versions of the engine between",
    "which the findings were corrected:",
    "",
    "| server | files | CREATE, ALTER, DROP, RENAME and TRUNCATE that were logged | table maps | wrong | "
    "unsure |",
    "| --- | --: | --: | --: | --: | --: |",
    "| MySQL 9.7 | 2,542 | 44,645 | 27,375 | 7 | 7 |",
    "| MySQL 9.7, its own | 3,938 | 98,102 | 60,041 | 3 | 17 |",
    "| MariaDB 11.8 | 2,190 | 44,365 | 29,615 | 28 | 42 |",
    "",
    "Wrong are: the primary keys of MERGE tables that the server cannot open (10); members of ENUM and SET",
    "in sessions whose connection has the character set utf16 or utf32 (12); a rename that concerns a",
    "temporary table (4); the order of a key's columns after a period (4); the character set `filename`,",
    "and CREATE TABLE … LIKE a table of information_schema (6); and CREATE TABLE IF NOT EXISTS of a name",
    "that a view has (2). A script from which the command was made also executed most of MariaDB's files on",
    "MariaDB 10.11, and a part of those of main on MySQL 8.0.15, 5.7 and 5.6. What was found, and is",
    "corrected:",
    "",
    "| finding | test |",
    "| --- | --- |",
    "| MariaDB 11.8: a hidden column for a primary key USING HASH, which it does not have, so that the run "
    "stopped | `test_source.py` |",
    "| MariaDB: two tables whose names differ in letter case alone were not described together | "
    "`test_source.py` |",
    "| ALTER TABLE: a new column takes the place in keys of a column that is dropped and has its name | "
    "`test_ddl_listed.py` |",
    "| CHARACTER SET after COLLATE: before MySQL 8.0.16 and MariaDB 10.9 the collation does not count | "
    "`test_ddl_listed.py` |",
    "| names with characters beyond the Basic Multilingual Plane, for which MySQL puts `?` | "
    "`test_ddl_listed.py` |",
    "| DROP TABLE in the client's character set whose bytes are valid UTF-8, too | "
    "`test_statement_events.py` |",
    "| statements that were not understood: bytes in comments that are not valid text, triggers with "
    "such bytes, "
    "and forms of MariaDB (DROP CONSTRAINT PRIMARY KEY, ALTER TABLE … WITH SYSTEM VERSIONING, "
    "MODIFY of an added column, JSON COMPRESSED, variables as defaults, TRUNCATE … STORAGE) | "
    "`test_ddl_listed.py`, `test_parser.py` |",
    "| MySQL 9.7's MASKING POLICY, and members of ENUM and SET as binary digits, which were not understood "
    "| `test_ddl_listed.py` |",
    "| defaults of the catalog that begin like NOW were taken for the current time; ENUM and SET defaults "
    "with spaces at the end | `test_ddl_listed.py` |",
    "| ADD COLUMN: what rows get from a DATETIME default with the offset of a time zone, or from bytes in a "
    "character set that is not UTF-8, is not certain | `test_alter_forms.py` |",
    "",
    "`python -m tests.fuzz.suite_rows` executes the same statements on a server with its default metadata,",
    "and then has an engine read what they logged, in a few runs, so that it meets rows of tables that were",
    "changed or dropped since. From one statement that defines tables to the next, the change rows have to",
    "lead from what SELECT gave of each table to what it gives then. `python -m tests.fuzz.suite_mirror` has",
    "a mirror keep the tables in a lakehouse, too, and compares targets with SELECT; and",
    "`python -m tests.fuzz.suite_snapshots` begins outputs with a snapshot in the middle of a file. On",
    "2026-11-28:",
    "",
    "| server | files | spans from one definition to the next | change rows | wrong | stopped |",
    "| --- | --: | --: | --: | --: | --: |",
    "| MySQL 9.7 | 91 | 5,938 | 76,602 | 3 | 0 |",
    "| MariaDB 11.8 | 80 | 2,126 | 153,804 | 1 | 0 |",
    "| MariaDB 11.8, main from g to t | 586 | 19,461 | 3,453,799 | 97 | 2 |",
    "| MariaDB 10.11, other suites | 274 | 3,294 | 455,849 | 9 | 1 |",
    "| MySQL 5.7 | 54 | 2,423 | 8,333 | 0 | 0 |",
    "| MySQL 5.6 | 140 | 7,591 | 30,786 | 8 | 0 |",
    "",
    "| server, format | files | tables compared | rows | wrong | set aside |",
    "| --- | --: | --: | --: | --: | --: |",
    "| MySQL 9.7, Delta | 24 | 61 | 69 | 0 | 0 |",
    "| MySQL 9.7, Iceberg | 39 | 103 | 4,709 | 0 | 0 |",
    "| MySQL 8.0, Delta | 79 | 150 | 206 | 0 | 2 |",
    "| MariaDB 11.8, Iceberg | 17 | 39 | 609 | 0 | 6 |",
    "| MariaDB 11.8, Delta | 126 | 72 | 217 | 2 | 42 |",
    "| MariaDB 11.8, Delta, versioning and period | 39 | 68 | 192 | 1 | 10 |",
    "| MariaDB 10.11, Iceberg, versioning | 31 | 37 | 25 | 0 | 14 |",
    "",
    "| server, snapshots | files | tables compared | rows | wrong | stopped |",
    "| --- | --: | --: | --: | --: | --: |",
    "| MySQL 9.7 | 491 | 3,206 | 45,269 | 4 | 0 |",
    "| MariaDB 11.8 | 213 | 720 | 7,296 | 1 | 0 |",
    "",
    "Where nothing else is said, the files are a part of main (alter, create, type, insert, update and",
    "others); the others are a part of the suites innodb, gcol, vcol, json, parts, versioning, period,",
    "sql_sequence, atomic and compat. What is counted as wrong and stopped in MariaDB's compat, which found",
    "two of the corrections, is from after them. What is wrong is among the differences below, but for two",
    "virtual columns of RAND() and of FROM_UNIXTIME(), an ALTER TABLE that MySQL 5.6 refused after a part of",
    "it, a date of the year 10000 that its SELECT shows as `:000`, and SET STATEMENT … FOR ALTER TABLE,",
    "which the comparison did not take for a definition; and the AUTO_INCREMENT that is corrected. What was",
    "set aside is changed by statement, or, in the run with 42 of them, had system versioning (31), which",
    "was refused then.",
    "",
    "What was found, and is corrected:",
    "",
    "| finding | test |",
    "| --- | --- |",
    "| a Delta target without a DATETIME column was set aside by the first one that ALTER TABLE added "
    "(VARIANT likewise): Delta's ALTER TABLE does not add the table feature that the type needs | "
    "`test_promises.py`, `test_mirror.py` |",
    "| an Iceberg changelog could not be read: Iceberg has columns `_file` and `_pos` itself | "
    "`test_mirror.py` |",
    "| a generated column that ALTER TABLE declares again, with another expression, did not count as changed "
    "by statement, so targets kept its old values | `test_alter_forms.py` |",
    "| MySQL 8.0 and 9.7: where a stream begins after a database was created, tables whose definition "
    "depends on its default character set (members of ENUM beyond ASCII, TEXT with a length, the attribute "
    "BINARY, a later CONVERT TO) were not certain, so that the run stopped | `test_late_names.py` |",
    "| CREATE TABLE … SELECT with sql_mode ANSI, ORACLE and others, which the server writes without the "
    "table's options, was not certain, so that the run stopped; now only the character sets are not | "
    "`test_late_names.py` |",
    "| names in brackets, with MariaDB's sql_mode MSSQL, were not understood | `test_ddl_listed.py` |",
    "| MariaDB: tables with a unique key of a POINT were not certain | `test_ddl_listed.py` |",
    "| pairs of bytes of gbk, big5, sjis, cp932 and euckr that servers store, but that are no character, "
    "were `?` and their second byte, if that is ASCII | `test_columns_charsets.py` |",
    "| dates of the year 10000, which FROM_DAYS stores in MySQL before 9.7, stopped the run | "
    "`test_impossible_dates.py` |",
    "| MariaDB's tables with system versioning were refused by `mirror` and `replay_table`, and with full "
    "metadata, where no CREATE TABLE was in the binlog, their past rows counted as rows | "
    "`test_replay_servers.py`, `lakehouse/test_servers.py` |",
    "| DELETE HISTORY while a snapshot read the table took present rows out of it | "
    "`snapshot/test_system_versioning.py` |",
    "| AUTO_INCREMENT for a column of rows with NULL or 0, to which the server gives numbers, did not count "
    "as changed by statement | `test_alterations.py` |",
    "| ADD COLUMN with constants such as `_latin1'é'`, -0.0 for a text, or a date for a TIME: rows were "
    "taken to have another value than the server gave them | `test_alterations.py`, `test_alter_forms.py` |",
    "",
    "`python -m tests.fuzz.suite_statements` executes the statements in sessions that log statements, and",
    "compares the tables that the engine reads from each INSERT, REPLACE, UPDATE and DELETE with those whose",
    "CHECKSUM TABLE has changed. On 2026-11-28, with a part of main:",
    "",
    "| server | files | statements that changed rows | named too few tables | through a view, trigger or "
    "foreign key | named more tables |",
    "| --- | --: | --: | --: | --: | --: |",
    "| MySQL 9.7 | 569 | 3,450 | 0 | 39 | 13 |",
    "| MariaDB 11.8 | 251 | 2,383 | 0 | 13 | 14 |",
    "",
    "What else differs: MySQL 9.7 logs wrong values of virtual columns of BLOB types in updates, and the",
    "change of a row twice where CASCADE comes back to it; text that is not valid in its character set;",
    "YEAR(2), which SELECT shows with two digits; MariaDB's hidden columns, and the generated ones that",
    "its images lack. Not certain, so that the run stops if the table is changed or dropped later, are",
    "members of ENUM written as bytes that are not ASCII or contain a zero, tables that a DROP TABLE",
    "named which failed (MySQL 5.6), tables with a key USING HASH after an ALTER TABLE, and texts of a",
    "CREATE TABLE … SELECT that MariaDB writes without the table's options.",
)
