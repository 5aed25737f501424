package contactfile

import (
	"errors"
	"strings"
	"testing"
)

func textSource(t *testing.T, text string) Source {
	t.Helper()
	s, err := FromFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRename checks that columns are read as the mapping says.
func TestRename(t *testing.T) {
	s := Rename(textSource(t, "A,B,C\n1,2,3\n4,5,6\n"), map[string]string{"A": "phone", "C": ""})
	var got []string
	for rec, err := range s {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range rec.Cells {
			got = append(got, c.Column+"="+c.Text)
		}
		if rec.Row == 1 {
			continue
		}
		break
	}
	if strings.Join(got, " ") != "phone=1 B=2 phone=4 B=5" {
		t.Errorf("%v", got)
	}
}

func TestColumnMeaning(t *testing.T) {
	for name, want := range map[string][2]string{
		"Phone Number": {"phone", ""}, "first name": {"", "first_name"}, "время": {"", ""}, "Time-Zone": {"timezone", ""},
	} {
		if col, variable := ColumnMeaning(name); col != want[0] || variable != want[1] {
			t.Errorf("%q means %q, %q", name, col, variable)
		}
	}
	for _, name := range Columns() {
		if col, _ := ColumnMeaning(name); col != name {
			t.Errorf("%q means %q", name, col)
		}
	}
}

// TestFileAsJSON checks that rows of a file mean the same after conversion to API rows.
func TestFileAsJSON(t *testing.T) {
	text := "phone,name,first name,priority,not_before,variables,metadata,state\n" +
		`2125550123,Ada,A,9,1700000000,"{""x"":""y""}","{""k"":1}",NY` + "\n" + `2125550124,,,high,,no,,` + "\n"
	all, err := JSON(textSource(t, text), 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"metadata":{"k":1},"name":"Ada","not_before":1700000000,"phone":"2125550123","priority":9,"state":"NY","variables":{"first_name":"A","x":"y"}}`,
		`{"phone":"2125550124","priority":"high","variables":"no"}`,
	} {
		if string(all[i]) != want {
			t.Errorf("%s", all[i])
		}
	}
	if _, err = JSON(textSource(t, text), 1); !errors.Is(err, ErrRowLimit) {
		t.Errorf("more than one row: %v", err)
	}
}

func TestPhoneColumns(t *testing.T) {
	for _, name := range []string{
		"phone", "PHONE", "Phone Number", "Mobile number", "Cell", "Cell phone", "Telephone", "Tel.", "Tel. no.", "Phone #", "Номер телефона", "Телефон", "Моб. телефон",
	} {
		if col, _ := ColumnMeaning(name); col != "phone" {
			t.Errorf("%q means %q", name, col)
		}
	}
	for _, name := range []string{"phone_type", "Cell color", "Phone notes", "Best time to phone"} {
		if col, _ := ColumnMeaning(name); col != "" {
			t.Errorf("%q means %q", name, col)
		}
	}
	for _, c := range []struct{ names, want string }{
		{"Mobile number,name,Phone", "=,name,phone"}, {"Cell,Телефон", "phone,"}, {"a,b", "=,="}, {"Tel.,tel", "phone,="},
	} {
		if got := strings.Join(ColumnMeanings(strings.Split(c.names, ",")), ","); got != c.want {
			t.Errorf("%s: %s", c.names, got)
		}
	}
}

// TestColumnNames checks that column names are those of the header line, whatever the rows contain.
func TestColumnNames(t *testing.T) {
	for name, text := range map[string]string{
		"short first row": "phone,name,amount\n2125550101\n", "no row": "phone,name,amount\n", "no end of line": "phone,name,amount",
		"not UTF-8": "phone,name,amount\n2125550101,Jos\xe9,1\n", "long first row": "phone,name,amount\n1,2,3,4,5\n",
	} {
		table, err := Open(strings.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range table.Source {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(table.Names, ","); got != "phone,name,amount" {
			t.Errorf("%s: %s", name, got)
		}
	}
	content := sheet(t, [][]any{{"phone", "name", "amount"}, {"2125550101"}, {"2125550102", "Ada", 5}}, nil)
	table, err := Open(strings.NewReader(string(content)), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range table.Source {
		if err != nil || len(rec.Cells) != 3 {
			t.Errorf("%v, %v", rec.Cells, err)
		}
	}
	if got := strings.Join(table.Names, ","); got != "phone,name,amount" {
		t.Errorf("spreadsheet: %s", got)
	}
}
