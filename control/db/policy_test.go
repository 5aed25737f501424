package db

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// statement is a statement of a migration.
type statement struct {
	text    string   // without comments, with single spaces
	allowed []string // names of the rules that a comment before the statement lifts
}

var (
	sqlComment = regexp.MustCompile(`--.*|/\*(?s:.*?)\*/`)
	lifts      = regexp.MustCompile(`^-- policy: allow ([a-z-]+), because .+`)
	anySpace   = regexp.MustCompile(`\s+`)
)

// statements returns the statements of the Up part of a migration, and whether they run in a transaction.
func statements(text string) (all []statement, inTransaction bool) {
	text, _, _ = strings.Cut(text, "-- +goose Down")
	var one strings.Builder
	var allowed []string
	whole := false // between StatementBegin and StatementEnd
	end := func() {
		if t := strings.TrimSpace(anySpace.ReplaceAllString(one.String(), " ")); t != "" && t != ";" {
			all, allowed = append(all, statement{strings.TrimSuffix(t, ";"), allowed}), nil
		}
		one.Reset()
	}
	inTransaction = true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch m := lifts.FindStringSubmatch(line); {
		case m != nil:
			allowed = append(allowed, m[1])
		case strings.EqualFold(line, "-- +goose NO TRANSACTION"):
			inTransaction = false
		case strings.EqualFold(line, "-- +goose StatementBegin"):
			whole = true
		case strings.EqualFold(line, "-- +goose StatementEnd"):
			whole = false
			end()
		}
		line = sqlComment.ReplaceAllString(line, "")
		for !whole && strings.Contains(line, ";") {
			before, after, _ := strings.Cut(line, ";")
			one.WriteString(" " + before)
			end()
			line = after
		}
		one.WriteString(" " + line)
	}
	end()
	return all, inTransaction
}

// rule refuses statements that would block the running nodes or break the previous release.
type rule struct {
	name    string
	pattern string // of a refused statement; the first group, if any, is the table
	unless  string // pattern of the safe form
	instead string
}

const table = `(?:IF EXISTS )?(?:ONLY )?"?(\w+)"?`

// rules apply to statements about tables that the migration does not create itself.
func rules() []rule {
	alter := `^ALTER TABLE ` + table + ` .*`
	return []rule{
		{"not-null", alter + `ADD (?:COLUMN )?(?:IF NOT EXISTS )?[^,]*\bNOT NULL\b`, `NOT NULL DEFAULT|DEFAULT [^,]*NOT NULL|NOT NULL.*NOT VALID`, "add the column with a constant DEFAULT, or nullable"},
		{"volatile-default", alter + `ADD [^,]*(?:\bSERIAL\b|\bBIGSERIAL\b|GENERATED|nextval\(|random\w*\(|clock_timestamp\(|gen_random_uuid\()`, "", "add the column without default, then fill it in batches; a default that is computed for each row rewrites the table"},
		{"column-constraint", alter + `ADD COLUMN [^,]*(?:\bCHECK\b|\bREFERENCES\b|\bUNIQUE\b|\bPRIMARY KEY\b)`, "", "add the column alone, then the constraint NOT VALID, and validate it in a file of its own"},
		{"constraint", alter + `ADD (?:CONSTRAINT \w+ )?(?:CHECK|FOREIGN KEY)\b`, `NOT VALID`, "ADD CONSTRAINT … NOT VALID, then VALIDATE CONSTRAINT in a NO TRANSACTION file of its own"},
		{"unique-constraint", alter + `ADD (?:CONSTRAINT \w+ )?(?:UNIQUE|PRIMARY KEY|EXCLUDE)\b`, `USING INDEX`, "CREATE UNIQUE INDEX CONCURRENTLY, then ADD CONSTRAINT … USING INDEX"},
		{"validate", alter + `VALIDATE CONSTRAINT`, "", "put VALIDATE CONSTRAINT into a NO TRANSACTION file: the scan would hold the locks of the transaction"},
		{"type", alter + `(?:SET DATA )?\bTYPE\b`, "", "add a new column and fill it in batches; a change of type rewrites the table under an exclusive lock"},
		{"set-not-null", alter + `SET NOT NULL`, "", "add CHECK (… IS NOT NULL) NOT VALID, validate it in the next file, and lift this rule for a SET NOT NULL after that"},
		{"drop", `^(?:DROP TABLE ` + table + `|ALTER TABLE ` + table + ` .*DROP (?:COLUMN|CONSTRAINT)\b|ALTER TABLE ` + table + ` .*DROP (?:IF EXISTS )?"?\w+"?$)`, `DROP (?:NOT NULL|DEFAULT)`, "the previous release still uses it: drop it one release after the last use, and lift this rule"},
		{"rename", `^ALTER (?:TABLE|INDEX|SEQUENCE|TYPE|FUNCTION) ` + table + `.* RENAME\b`, "", "the previous release uses the old name: add the new thing beside the old one"},
		{"rewrite", `^(?:VACUUM|CLUSTER|TRUNCATE|REINDEX|LOCK)\b`, `REINDEX \w+ CONCURRENTLY|^VACUUM \(?ANALYZE`, "no statement may lock or rewrite a whole table"},
		{"index", `^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?(?:\w+ )?ON ` + table, "", "CREATE INDEX CONCURRENTLY in a file with -- +goose NO TRANSACTION, after DROP INDEX CONCURRENTLY IF EXISTS of the same name"},
		{"drop-index", `^DROP INDEX\b`, `CONCURRENTLY`, "DROP INDEX CONCURRENTLY in a file with -- +goose NO TRANSACTION"},
		{"update", `^(?:WITH .*)?\bUPDATE ` + table, "", "change rows in batches: a DO block in a NO TRANSACTION file that commits after at most 5,000 rows"},
		{"delete", `^(?:WITH .*)?\bDELETE FROM ` + table, "", "delete rows in batches: a DO block in a NO TRANSACTION file that commits after at most 5,000 rows"},
		{"insert", `^(?:WITH .*)?\bINSERT INTO .*\bFROM ` + table, "", "copy rows in batches: a DO block in a NO TRANSACTION file that commits after at most 5,000 rows"},
	}
}

var (
	createsTable = regexp.MustCompile(`(?i)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	createsIndex = regexp.MustCompile(`(?i)^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?(\w+)`)
	altersTable  = regexp.MustCompile(`(?i)^ALTER TABLE ` + table)
	// long are the statements that a file without a transaction may have. They wait for locks without blocking others.
	long = regexp.MustCompile(`(?i)^(?:SET (?:lock|statement)_timeout = 0$|(?:CREATE|CREATE UNIQUE|DROP) INDEX CONCURRENTLY|ALTER TABLE \w+ VALIDATE CONSTRAINT|DO )`)
)

// lint returns what is wrong with a migration.
func lint(text string) (faults []string) {
	all, inTransaction := statements(text)
	var created, altered, dropped []string
	for _, s := range all {
		if m := createsTable.FindStringSubmatch(s.text); m != nil {
			created = append(created, m[1])
		}
	}
	refuse := func(s statement, name, instead string) {
		if !slices.Contains(s.allowed, name) {
			faults = append(faults, fmt.Sprintf("%.80s: refused by the rule %q; instead: %s", s.text, name, instead))
		}
	}
	for n, s := range all {
		for _, r := range rules() {
			m := regexp.MustCompile("(?i)" + r.pattern).FindStringSubmatch(s.text)
			if m == nil || r.unless != "" && regexp.MustCompile("(?i)"+r.unless).MatchString(s.text) ||
				r.name == "validate" && !inTransaction || slices.ContainsFunc(m[1:], func(t string) bool { return slices.Contains(created, t) }) {
				continue
			}
			refuse(s, r.name, r.instead)
		}
		if m := altersTable.FindStringSubmatch(s.text); m != nil && !slices.Contains(created, m[1]) && !slices.Contains(altered, m[1]) {
			if altered = append(altered, m[1]); len(altered) > 1 {
				refuse(s, "two-tables", "alter one table in a file: "+altered[0]+" would stay locked while the migration waits for "+m[1])
			}
		}
		if name, ok := strings.CutPrefix(strings.ToUpper(s.text), "DROP INDEX CONCURRENTLY IF EXISTS "); ok {
			dropped = append(dropped, strings.ToLower(name))
		}
		switch m := createsIndex.FindStringSubmatch(s.text); {
		case m != nil && inTransaction:
			refuse(s, "index", "CONCURRENTLY needs -- +goose NO TRANSACTION")
		case m != nil && !slices.Contains(dropped, strings.ToLower(m[1])):
			refuse(s, "index", "DROP INDEX CONCURRENTLY IF EXISTS "+m[1]+" first: an interrupted build leaves an invalid index")
		}
		if !inTransaction && !long.MatchString(s.text) {
			refuse(s, "no-transaction", "only SET, CREATE and DROP INDEX CONCURRENTLY, VALIDATE CONSTRAINT and DO run without a transaction")
		}
		if want := []string{"SET lock_timeout = 0", "SET statement_timeout = 0"}; !inTransaction && n < 2 && s.text != want[n] {
			refuse(s, "no-transaction", "begin with "+want[0]+"; "+want[1]+";: these statements may take long, and block nobody")
		}
		if inTransaction && regexp.MustCompile(`(?i)^(?:SET|SELECT set_config).*(?:lock|statement)_timeout`).MatchString(s.text) {
			refuse(s, "timeout", "a statement that needs more time does not belong in a transaction")
		}
	}
	return faults
}

// TestMigrationPolicy checks every migration after the baseline against the rules of docs/upgrading.md.
func TestMigrationPolicy(t *testing.T) {
	names, err := fs.Glob(embedded, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		var version int
		if _, err := fmt.Sscanf(name, "migrations/%d_", &version); err != nil {
			t.Errorf("%s: %v; a name is like 00260_topic.sql", name, err)
		}
		text, err := fs.ReadFile(embedded, name)
		if err != nil {
			t.Fatal(err)
		}
		if version <= baseline {
			continue
		}
		for _, fault := range lint(string(text)) {
			t.Errorf("control/db/%s: %s (docs/upgrading.md; to lift a rule: -- policy: allow RULE, because REASON)", name, fault)
		}
	}
}

// TestLint checks that each rule refuses what it is for and accepts the safe form.
func TestLint(t *testing.T) {
	const noTransaction = "-- +goose NO TRANSACTION\nSET lock_timeout = 0;\nSET statement_timeout = 0;\n"
	for _, c := range []struct{ rule, sql string }{
		{"", "ALTER TABLE calls ADD COLUMN x int;"},
		{"", "ALTER TABLE calls ADD COLUMN x int NOT NULL DEFAULT 0;"},
		{"", "ALTER TABLE calls ADD COLUMN x timestamptz DEFAULT now();"},
		{"not-null", "ALTER TABLE calls ADD COLUMN x int NOT NULL;"},
		{"not-null", "ALTER TABLE calls ADD COLUMN y int DEFAULT 0,\n ADD COLUMN x int NOT NULL;"},
		{"volatile-default", "ALTER TABLE calls ADD COLUMN x uuid DEFAULT gen_random_uuid();"},
		{"volatile-default", "ALTER TABLE calls ADD COLUMN x bigserial;"},
		{"column-constraint", "ALTER TABLE calls ADD COLUMN x int CHECK (x > 0);"},
		{"column-constraint", "ALTER TABLE calls ADD COLUMN x text REFERENCES agents;"},
		{"constraint", "ALTER TABLE calls ADD CONSTRAINT c CHECK (x > 0);"},
		{"constraint", "ALTER TABLE calls ADD FOREIGN KEY (x) REFERENCES agents;"},
		{"", "ALTER TABLE calls ADD CONSTRAINT c CHECK (x > 0) NOT VALID;"},
		{"", "ALTER TABLE calls ADD CONSTRAINT c CHECK (x IS NOT NULL) NOT VALID;"},
		{"unique-constraint", "ALTER TABLE calls ADD CONSTRAINT c UNIQUE (x);"},
		{"", "ALTER TABLE calls ADD CONSTRAINT c UNIQUE USING INDEX i;"},
		{"validate", "ALTER TABLE calls VALIDATE CONSTRAINT c;"},
		{"", noTransaction + "ALTER TABLE calls VALIDATE CONSTRAINT c;"},
		{"type", "ALTER TABLE calls ALTER COLUMN x TYPE bigint;"},
		{"type", "alter table calls alter x set data type bigint;"},
		{"set-not-null", "ALTER TABLE calls ALTER COLUMN x SET NOT NULL;"},
		{"", "-- policy: allow set-not-null, because 00300 validated a CHECK\nALTER TABLE calls ALTER COLUMN x SET NOT NULL;"},
		{"drop", "DROP TABLE calls;"},
		{"drop", "ALTER TABLE calls DROP COLUMN x;"},
		{"", "ALTER TABLE calls ALTER COLUMN x DROP NOT NULL;"},
		{"rename", "ALTER TABLE calls RENAME COLUMN x TO y;"},
		{"rewrite", "LOCK TABLE calls IN SHARE MODE;"},
		{"rewrite", "TRUNCATE calls;"},
		{"index", "CREATE INDEX i ON calls (x);"},
		{"index", "CREATE UNIQUE INDEX i ON calls (x);"},
		{"", "CREATE TABLE new (x int);\nCREATE INDEX i ON new (x);\nALTER TABLE new ADD UNIQUE (x);"},
		{"index", "DROP INDEX CONCURRENTLY IF EXISTS i;\nCREATE INDEX CONCURRENTLY i ON calls (x);"},
		{"index", noTransaction + "CREATE INDEX CONCURRENTLY i ON calls (x);"},
		{"", noTransaction + "DROP INDEX CONCURRENTLY IF EXISTS i;\nCREATE INDEX CONCURRENTLY i ON calls (x);"},
		{"drop-index", "DROP INDEX i;"},
		{"update", "UPDATE calls SET x = 1;"},
		{"update", "WITH a AS (SELECT 1) UPDATE calls SET x = 1;"},
		{"delete", "DELETE FROM calls;"},
		{"insert", "INSERT INTO new SELECT x FROM calls;"},
		{"", "INSERT INTO new VALUES (1);"},
		{"two-tables", "ALTER TABLE calls ADD COLUMN x int;\nALTER TABLE attempts ADD COLUMN x int;"},
		{"no-transaction", noTransaction + "ALTER TABLE calls ADD COLUMN x int;"},
		{"no-transaction", "-- +goose NO TRANSACTION\nDROP INDEX CONCURRENTLY IF EXISTS i;"},
		{"", noTransaction + "-- +goose StatementBegin\nDO $$ BEGIN LOOP UPDATE calls SET x = 1; COMMIT; END LOOP; END $$;\n-- +goose StatementEnd"},
		{"timeout", "SET LOCAL statement_timeout = 0;"},
		{"", "-- DROP TABLE calls;\nSELECT 1;\n-- +goose Down\nDROP TABLE calls;"},
	} {
		faults := strings.Join(lint("-- +goose Up\n"+c.sql), "\n")
		if c.rule == "" && faults != "" || c.rule != "" && !strings.Contains(faults, `rule "`+c.rule+`"`) {
			t.Errorf("%s\nwant a fault by %q, found: %s", c.sql, c.rule, faults)
		}
	}
}
