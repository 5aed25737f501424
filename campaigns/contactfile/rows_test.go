package contactfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"

	"github.com/parley-voice/parley/campaigns/market"
)

func options(tb testing.TB, code string) Options {
	tb.Helper()
	p, err := market.Load(code)
	if err != nil {
		tb.Fatal(err)
	}
	return Options{Market: p, Duplicates: RejectDuplicates, Zone: func(name string) error {
		_, err := time.LoadLocation(name)
		return err
	}}
}

// parseArray splits a JSON array.
func parseArray(tb testing.TB, array string) []json.RawMessage {
	tb.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(array), &all); err != nil {
		tb.Fatal(err)
	}
	return all
}

// rowsOf returns the rows of a list that can be read.
func rowsOf(l *List) (all []*Row) {
	for r, err := range l.All() {
		if err != nil {
			break // Check would have returned it
		}
		all = append(all, r)
	}
	return all
}

// summary returns one line per row: its number, status, phone and codes.
func summary(l *List) string {
	var b strings.Builder
	for _, r := range rowsOf(l) {
		fmt.Fprintf(&b, "%d %s %s", r.Row, r.Status, r.Number.E164)
		for _, i := range r.Issues {
			fmt.Fprintf(&b, " %s:%s", i.Code, i.Column)
		}
		b.WriteString("\n")
	}
	return b.String() + l.Refusal
}

func TestJSON(t *testing.T) {
	for _, c := range []struct{ name, rows, want string }{
		{"plain", `[{"phone":"2125550123","name":" Ada "}]`, "1 accepted +12125550123\n"},
		{"a number keeps its digits", `[{"phone":12125550123}]`, "1 accepted +12125550123\n"},
		{
			"not an integer", `[{"phone":1.5},{"phone":1e10},{"phone":-12125550123}]`,
			"1 rejected  phone_invalid:phone\n2 rejected  phone_invalid:phone\n3 rejected  phone_invalid:phone\nno_usable_rows",
		},
		{
			"other types", `[{"phone":true},{"phone":null},{"phone":["2125550123"]},{"phone":{}},{"phone":""}]`,
			"1 rejected  phone_invalid:phone\n2 rejected  phone_missing:phone\n3 rejected  phone_invalid:phone\n" +
				"4 rejected  phone_invalid:phone\n5 rejected  phone_missing:phone\nno_usable_rows",
		},
		{
			"aliases", `[{"Phone Number":"2125550123"},{"TEL":"2125550124"},{"номер":"2125550125"},{"to-number":"2125550126"}]`,
			"1 accepted +12125550123\n2 accepted +12125550124\n3 accepted +12125550125\n4 accepted +12125550126\n",
		},
		{"two aliases", `[{"phone":"2125550123","tel":"2125550124"}]`, "1 warned +12125550123 column_ignored:tel\n"},
		{"two aliases, the better last", `[{"cell":"2125550123","Mobile number":"2125550124"}]`, "1 warned +12125550124 column_ignored:cell\n"},
		{"no phone column", `[{"name":"Ada"},{"name":"Bob"}]`, "1 rejected  phone_missing:\n2 rejected  phone_missing:\nno_phone_column"},
		{"not objects", `["2125550123",7,null]`, "1 rejected  row_unreadable:\n2 rejected  row_unreadable:\n3 rejected  row_unreadable:\nno_phone_column"},
		{
			"foreign and toll-free", `[{"phone":"+442071838750"},{"phone":"8005550123"},{"phone":"4165550123"}]`,
			"1 warned +442071838750 phone_country_unsupported:phone\n2 warned +18005550123 phone_type_unsupported:phone\n" +
				"3 warned +14165550123 phone_country_unsupported:phone\n",
		},
		{"split area code", `[{"phone":"8505550123"}]`, "1 warned +18505550123 timezone_ambiguous:phone\n"},
		{
			"zone", `[{"phone":"2125550123","timezone":"Mars/Base"},{"phone":"2125550124","timezone":5},{"phone":"2125550125","timezone":"America/New_York"}]`,
			"1 rejected +12125550123 timezone_unknown:timezone\n2 rejected +12125550124 timezone_unknown:timezone\n3 accepted +12125550125\n",
		},
		{
			"variables", `[{"phone":"2125550123","variables":{"a":"x"}},{"phone":"2125550124","variables":{"a":1}},
			{"phone":"2125550125","variables":"a"},{"phone":"2125550126","variables":{"1a":"x"}},{"phone":"2125550127","variables":{"a":null}}]`,
			"1 accepted +12125550123\n2 rejected +12125550124 variables_invalid:variables.a\n3 rejected +12125550125 variables_invalid:variables\n" +
				"4 rejected +12125550126 variables_invalid:variables.1a\n5 rejected +12125550127 variables_invalid:variables.a\n",
		},
		{
			"other columns", `[{"phone":"2125550123","color":"red"},{"phone":"2125550124","priority":10},{"phone":"2125550125","priority":9},
			{"phone":"2125550126","not_before":"soon"},{"phone":"2125550127","not_before":1795222586.5},{"phone":"2125550128","metadata":[]},
			{"phone":"2125550129","metadata":{"k":1}},{"phone":"2125550130","state":"XX"}]`,
			"1 warned +12125550123 column_ignored:color\n2 rejected +12125550124 column_invalid:priority\n3 accepted +12125550125\n" +
				"4 rejected +12125550126 column_invalid:not_before\n5 accepted +12125550127\n6 rejected +12125550128 column_invalid:metadata\n" +
				"7 accepted +12125550129\n8 rejected +12125550130 column_invalid:state\n",
		},
		{
			"long name", `[{"phone":"2125550123","name":"` + strings.Repeat("ы", 201) + `"},{"phone":"2125550124","name":"` + strings.Repeat("ы", 200) + `"}]`,
			"1 rejected +12125550123 name_too_long:name\n2 accepted +12125550124\n",
		},
		{"doubtful", `[{"phone":"7295550123"}]`, "1 warned +17295550123 phone_possible_not_valid:phone timezone_ambiguous:phone\n"},
		{"empty", `[]`, ""},
	} {
		l, err := Check(FromJSON(parseArray(t, c.rows)), options(t, "us"))
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(l); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}

func TestDuplicates(t *testing.T) {
	const list = `[{"phone":"2125550123","name":"a"},{"phone":"+1 212 555 0123","name":"b","priority":99},
		{"phone":"12125550123","name":"c"},{"phone":"2125550199"},{"phone":"nonsense"}]`
	for action, want := range map[DuplicateAction]struct {
		statuses                     string
		accepted, rejected, left, of int
	}{
		RejectDuplicates: {"rejected rejected rejected accepted rejected", 1, 4, 0, 2},
		KeepFirst:        {"accepted rejected duplicate accepted rejected", 2, 2, 1, 2},
		KeepLast:         {"duplicate rejected accepted accepted rejected", 2, 2, 1, 2},
	} {
		o := options(t, "us")
		o.Duplicates = action
		l, err := Check(FromJSON(parseArray(t, list)), o)
		if err != nil {
			t.Fatal(err)
		}
		var s []string
		for _, r := range rowsOf(l) {
			s = append(s, string(r.Status))
		}
		if got := strings.Join(s, " "); got != want.statuses || l.Accepted != want.accepted || l.Rejected != want.rejected ||
			l.Dropped != want.left || l.Duplicates != want.of {
			t.Errorf("%s: %s, %d accepted, %d rejected, %d dropped, %d duplicates; want %+v",
				action, got, l.Accepted, l.Rejected, l.Dropped, l.Duplicates, want)
		}
	}
}

// TestContactZone checks that in Kazakhstan the rows of a batch must name their zone if the campaign calls in the
// contact's zone. Rows of other lists use the campaign's zone.
func TestContactZone(t *testing.T) {
	phones := map[string]string{"kz": "87012345678", "us": "2125550123"}
	for _, c := range []struct {
		market       string
		zones, batch bool
		want         Status
	}{
		{"kz", true, true, Rejected}, {"kz", true, false, Warned}, {"kz", false, true, Accepted}, {"us", true, true, Warned},
	} {
		o := options(t, c.market)
		o.ContactZone, o.Batch = c.zones, c.batch
		l, err := Check(FromJSON(parseArray(t, `[{"phone":"`+phones[c.market]+`"}]`)), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsOf(l)[0].Status; got != c.want {
			t.Errorf("%+v: %s, %v", c, got, rowsOf(l)[0].Issues)
		}
	}
}

// TestEachRowCountsOnce checks that each row is accepted, rejected or dropped, and no number is accepted
// twice.
func TestEachRowCountsOnce(t *testing.T) {
	phones := []string{"2125550123", "+12125550123", "2125550124", "8505550125", "+442071838750", "911", "", "8005550123", "x"}
	us := options(t, "us")
	rapid.Check(t, func(t *rapid.T) {
		o := us
		o.Duplicates = rapid.SampledFrom([]DuplicateAction{RejectDuplicates, KeepFirst, KeepLast}).Draw(t, "action")
		var raw []json.RawMessage
		for range rapid.IntRange(0, 12).Draw(t, "rows") {
			b, err := json.Marshal(map[string]any{
				"phone":    rapid.SampledFrom(phones).Draw(t, "phone"),
				"priority": rapid.SampledFrom([]any{1, 50, "x"}).Draw(t, "priority"),
			})
			if err != nil {
				t.Fatal(err)
			}
			raw = append(raw, b)
		}
		l, err := Check(FromJSON(raw), o)
		if err != nil {
			t.Fatal(err)
		}
		if l.Accepted+l.Rejected+l.Dropped != len(raw) || l.Warned > l.Accepted || l.Seen != len(raw) {
			t.Fatalf("%d rows: %d accepted, %d rejected, %d dropped, %d warned", len(raw), l.Accepted, l.Rejected, l.Dropped, l.Warned)
		}
		seen := map[string]bool{}
		for _, r := range rowsOf(l) {
			if r.IsAccepted() && (seen[r.Number.E164] || r.Number.E164 == "") {
				t.Fatalf("%q accepted twice, or without a number:\n%s", r.Number.E164, summary(l))
			}
			seen[r.Number.E164] = seen[r.Number.E164] || r.IsAccepted()
		}
		_, byCode, total := l.Issues(3)
		for _, n := range byCode {
			total -= n
		}
		if total != 0 {
			t.Fatalf("issues by code do not add up: %v", byCode)
		}
	})
}

func checkFile(tb testing.TB, content []byte, o Options) (*List, error) {
	tb.Helper()
	s, err := FromFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	return Check(s, o)
}

func TestTextFiles(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"commas", "phone,name\n2125550123,Ada\n2125550124,\"Bob, Jr\"\n", "1 accepted +12125550123\n2 accepted +12125550124\n"},
		{"semicolons and a byte order mark", "\ufeffPhone;Name;plan\r\n2125550123;Ada;gold\r\n", "1 accepted +12125550123\n"},
		{"tabs", "tel\tname\n2125550123\tAda\n", "1 accepted +12125550123\n"},
		{"UTF-16", "\xff\xfep\x00h\x00o\x00n\x00e\x00\n\x002\x001\x002\x005\x005\x005\x000\x001\x002\x003\x00\n\x00", "1 accepted +12125550123\n"},
		{"Latin-1", "phone,name\n2125550123,Jos\xe9\n2125550124,Ada\n", "1 warned +12125550123 encoding_assumed:\n2 accepted +12125550124\n"},
		{"Latin-1 twice", "phone,name\n2125550123,Jos\xe9\n2125550124,Zo\xeb\n", "1 warned +12125550123 encoding_assumed:\n2 accepted +12125550124\n"},
		{"names in Windows-1251", "\xd2\xe5\xeb\xe5\xf4\xee\xed;\xc8\xec\xff\n2125550123;\xdf\xed\n", "1 warned +12125550123 encoding_assumed: column_ignored:Имя\n"},
		{"two phones", "Cell,name,Phone,x\n3105550123,Ada,2125550123,\n3105550124,Ada\n", "1 warned +12125550123 phone_column_chosen:Phone\n2 rejected  phone_missing:Phone\n"},
		{"a decimal fraction", "phone\n2125550123.0\n", "1 accepted +12125550123\n"},
		{"too many values", "phone,name\n2125550123,Ada,more\n2125550124,Ada,\n", "1 rejected  row_unreadable:\n2 accepted +12125550124\n"},
		{"a line break inside", "phone,name\n2125550123,\"A\nB\"\n2125550124,C\n", "1 accepted +12125550123\n2 accepted +12125550124\n"},
		{"a name that cannot be a variable", "phone,1st thing\n2125550123,x\n", "1 warned +12125550123 column_ignored:1st thing\n"},
		{"no phone", "name,color\nAda,red\n", "1 rejected  phone_missing:\nno_phone_column"},
		{"header line only", "phone,name\n", ""},
	} {
		l, err := checkFile(t, []byte(c.file), options(t, "us"))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := summary(l); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
	l, err := checkFile(t, []byte("phone,Plan Name\n2125550123,gold\n"), options(t, "us"))
	if err != nil || rowsOf(l)[0].Variables["Plan_Name"] != "gold" {
		t.Errorf("an unknown column is not a variable: %v %v", rowsOf(l)[0].Variables, err)
	}
	for name, bad := range map[string]string{
		"empty":              " \n ",
		"an old spreadsheet": "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and so on",
		"a picture":          "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"a repeated name":    "phone,name,name\n2125550123,a,b\n",
		"an unclosed quote":  "phone,name\n2125550123,\"" + strings.Repeat("x\n", maxRecord),
		"a damaged zip":      "PK\x03\x04 and then nothing",
		"control characters": "%PDF-1.4\n\x01\x02\x03\x04\x05\x06\x07",
		"a thousand columns": strings.Repeat("a,", 1000) + "phone\n1\n",
	} {
		if _, err := checkFile(t, []byte(bad), options(t, "us")); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sheet returns a spreadsheet of values.
func sheet(tb testing.TB, rows [][]any, change func(*excelize.File)) []byte {
	tb.Helper()
	f := excelize.NewFile()
	defer f.Close() //nolint:errcheck // in memory
	for i, r := range rows {
		if err := f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+1), &r); err != nil {
			tb.Fatal(err)
		}
	}
	if change != nil {
		change(f)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestSheet(t *testing.T) {
	content := sheet(t, [][]any{
		{"Phone", "Name", "Plan"}, {12125550123, "Ada", "gold"}, {}, {"(212) 555-0124", "Bob"}, {1.2125550125e10, nil, 7}, {"", "Cleo"},
	}, func(f *excelize.File) {
		if err := f.SetCellFormula("Sheet1", "B4", `=A4`); err != nil {
			t.Fatal(err)
		}
	})
	l, err := checkFile(t, content, options(t, "us"))
	if err != nil {
		t.Fatal(err)
	}
	want := "1 accepted +12125550123\n3 warned +12125550124 formula_value:Name\n4 accepted +12125550125\n5 rejected  phone_missing:Phone\n"
	if got := summary(l); got != want {
		t.Errorf("\n%swant\n%s", got, want)
	}
	if v := rowsOf(l)[0].Variables["Plan"]; v != "gold" {
		t.Errorf("Plan is %q", v)
	}
}

// TestZipBomb checks that a small file that unpacks to gigabytes is rejected before it is unpacked.
func TestZipBomb(t *testing.T) {
	var rows [][]any
	rows = append(rows, []any{"phone"}, []any{strings.Repeat(" ", 32000)})
	for i := range 600 {
		rows = append(rows, []any{fmt.Sprint(i) + strings.Repeat("a", 32000)})
	}
	content := sheet(t, rows, nil)
	if len(content) > 1<<20 {
		t.Fatalf("the file has %d bytes", len(content))
	}
	if _, err := checkFile(t, content, options(t, "us")); !errors.Is(err, ErrFile) {
		t.Errorf("%d bytes: %v", len(content), err)
	}
}

func TestTooMany(t *testing.T) {
	o := options(t, "us")
	o.MaxRows = 2
	if _, err := Check(FromJSON(parseArray(t, `[{},{},{}]`)), o); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("phone,name\n2125550123,Ada\n"))
	f.Add([]byte("\ufeffPhone;Name\r\n2125550123;\"Ada\r\n\""))
	f.Add(sheet(f, [][]any{{"phone"}, {"2125550123"}}, nil))
	o := options(f, "us")
	o.MaxRows = 1000
	f.Fuzz(func(t *testing.T, content []byte) {
		l, err := checkFile(t, content, o)
		if err != nil {
			return
		}
		if l.Accepted+l.Rejected+l.Dropped != l.Seen {
			t.Errorf("%d rows: %s", l.Seen, summary(l))
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"phone":"2125550123","variables":{"a":"b"},"metadata":{}}`))
	f.Add([]byte(`{"phone":12125550123,"phone":null,"not_before":1e400}`))
	o := options(f, "us")
	f.Fuzz(func(t *testing.T, row []byte) {
		if l, err := Check(FromJSON([]json.RawMessage{row, row}), o); err != nil || l.Seen != 2 {
			t.Errorf("%v", err)
		}
	})
}

// TestZeroByte checks that a zero byte rejects its row, not the list. Postgres accepts no zero byte in a text.
func TestZeroByte(t *testing.T) {
	l, err := Check(FromJSON(parseArray(t, `[{"phone":"212555\u00000123"},{"phone":"2125550124"}]`)), options(t, "us"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(l), "1 rejected  phone_invalid:phone\n2 accepted +12125550124\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if strings.ContainsRune(rowsOf(l)[0].Phone, 0) {
		t.Error("the zero byte is still there")
	}
}

// TestIssuesKeepOrder checks that the issues of a row's variables are sorted by name.
func TestIssuesKeepOrder(t *testing.T) {
	want := "1 rejected +12125550123"
	var variables []string
	for i := range 20 {
		name := fmt.Sprintf("v%02d", i)
		variables = append(variables, fmt.Sprintf("%q:%d", name, i))
		want += " variables_invalid:variables." + name
	}
	list := `[{"phone":"2125550123","variables":{` + strings.Join(variables, ",") + `}}]`
	for range 3 {
		l, err := Check(FromJSON(parseArray(t, list)), options(t, "us"))
		if err != nil {
			t.Fatal(err)
		}
		if got := summary(l); got != want+"\nno_usable_rows" {
			t.Fatalf("%s\nwant %s", got, want)
		}
	}
}
