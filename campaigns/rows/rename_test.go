package rows

import (
	"errors"
	"strings"
	"testing"
)

func fileOf(t *testing.T, text string) Source {
	t.Helper()
	s, err := FromFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRenamed: columns are taken for what somebody says that they are.
func TestRenamed(t *testing.T) {
	s := Renamed(fileOf(t, "A,B,C\n1,2,3\n4,5,6\n"), map[string]string{"A": "phone", "C": ""})
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

func TestMeans(t *testing.T) {
	for name, want := range map[string][2]string{
		"Phone Number": {"phone", ""}, "first name": {"", "first_name"}, "время": {"", ""}, "Time-Zone": {"timezone", ""},
	} {
		if col, variable := Means(name); col != want[0] || variable != want[1] {
			t.Errorf("%q means %q, %q", name, col, variable)
		}
	}
	for _, name := range Columns() {
		if col, _ := Means(name); col != name {
			t.Errorf("%q means %q", name, col)
		}
	}
}

// TestFileAsJSON: rows of a file are those of the API, and read as the same.
func TestFileAsJSON(t *testing.T) {
	text := "phone,name,first name,priority,not_before,variables,metadata,state\n" +
		`2125550123,Ada,A,9,1700000000,"{""x"":""y""}","{""k"":1}",NY` + "\n" + `2125550124,,,high,,no,,` + "\n"
	all, err := JSON(fileOf(t, text), 2)
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
	if _, err = JSON(fileOf(t, text), 1); !errors.Is(err, ErrLong) {
		t.Errorf("one row at most: %v", err)
	}
}
