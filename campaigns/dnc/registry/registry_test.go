package registry

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// build returns a registry of files with these contents.
func build(tb testing.TB, from string, contents ...string) (string, error) {
	tb.Helper()
	dir := tb.TempDir()
	name := filepath.Join(dir, "registry")
	b, err := Build(name, from)
	if err != nil {
		return "", err
	}
	for i, c := range contents {
		list := filepath.Join(dir, fmt.Sprint("list", i))
		if err := os.WriteFile(list, []byte(c), 0o600); err != nil {
			tb.Fatal(err)
		}
		if err := b.Load(list, nil); err != nil {
			if e := b.Abort(); e != nil {
				tb.Error(e)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "*.part"))
			if len(left) > 0 {
				tb.Errorf("%v are left", left)
			}
			return "", err
		}
	}
	return name, b.Done()
}

func openSet(tb testing.TB, name string) *Set {
	tb.Helper()
	s, err := Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func zipOf(tb testing.TB, name, content string) string {
	tb.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func TestListForms(t *testing.T) {
	for name, content := range map[string]string{
		"plain":            "2025550123\n2025550124\n",
		"no last line end": "2025550123\r\n2025550124",
		"area code apart":  "\ufeff202,5550123\n\n202,5550124\n",
		"dashes":           "202-555-0123\n(202) 555-0124\n",
		"country code":     "+12025550123\n1-202-555-0124\n",
		"changes":          "2025550123,A,2026-11-01\n202,5550199,A,11/01/2026\n202,5550124,A,2026-11-01\n202,5550199,D,2026-11-02\n",
		"other order":      "A,2026-11-01,2025550123\n2026-11-01,a,202,5550124\n",
		"a header line":    "Phone;Added\n2025550123;\n2025550124;2026-11-01\n",
		"quotes and tabs":  "\"2025550123\"\tx y\n\"202\"\t\"5550124\"\n",
		"XML":              `<?xml version="1.0"?><list type='full' level='state' val='DC'><ac val='202'><ph val='5550123'/><ph val='5550124' /></ac></list>`,
		"zip":              zipOf(t, "202.txt", "2025550123\n2025550124\n"),
		"zip of XML":       zipOf(t, "202.xml", `<list><ac val="202"><ph val="5550123"/><ph val="5550124"/></ac></list>`),
	} {
		file, err := build(t, "", content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := openSet(t, file)
		for number, want := range map[string][2]bool{
			"+12025550123": {true, true}, "+12025550124": {true, true}, "+12025550125": {false, true}, "+12025550199": {false, true},
			"+13025550123": {false, false}, "+442071838750": {false, false}, "+2025550123": {false, false}, "": {false, false}, "+1202555012x": {false, false},
		} {
			if listed, loaded := s.Has(number); listed != want[0] || loaded != want[1] {
				t.Errorf("%s: %s is listed %v, loaded %v", name, number, listed, loaded)
			}
		}
		if a := s.Areas(); len(a) != 1 || a["202"] != 2 {
			t.Errorf("%s: %v", name, a)
		}
	}
}

func TestBadLists(t *testing.T) {
	for name, content := range map[string]string{
		"an unknown change": "2025550123,A\n2025550124,X\n",
		"nine digits":       "202555012\n",
		"no number":         "2025550123\nhello\n",
		"no such number":    "2021550123\n",
		"no such area code": "1025550123\n",
		"a long line":       strings.Repeat("2", 5000),
		"half a zip":        zipOf(t, "a", "2025550123\n")[:40],
		"broken XML":        "<list><ac val='202'><ph val='5550123'></x></",
		"XML without area":  "<list><ph val='5550123'/></list>",
		"UTF-16":            "\xff\xfe2\x000\x002\x00",
		"two header lines":  "phone\nphone\n",
		"a bomb of lines":   zipOf(t, "a", strings.Repeat("\n", 40<<20)),
		"a zip in a zip":    zipOf(t, "a.zip", zipOf(t, "a", "2025550123\n")),
		"a complaint file":  "Company_Phone_Number,Created_Date\n,2026-11-01\n",
	} {
		if _, err := build(t, "", content); !errors.Is(err, ErrList) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUpdate checks that a list of changes makes a new file, and that the old file stays readable.
func TestUpdate(t *testing.T) {
	first, err := build(t, "", "2025550123\n2025550124\n")
	if err != nil {
		t.Fatal(err)
	}
	old := openSet(t, first)
	second, err := build(t, first, "2025550123,D\n3025550123,A\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(second, first); err != nil {
		t.Fatal(err)
	}
	fresh := openSet(t, first)
	if listed, _ := old.Has("+12025550123"); !listed {
		t.Error("the old set changed")
	}
	if listed, _ := fresh.Has("+12025550123"); listed {
		t.Error("a deleted number is listed")
	}
	if listed, _ := fresh.Has("+13025550123"); !listed || fresh.Areas()["202"] != 1 {
		t.Errorf("the changes are missing: %v", fresh.Areas())
	}
}

// TestAreaWithoutNumbers checks that an area code without listed numbers can be loaded.
func TestAreaWithoutNumbers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "registry")
	b, err := Build(name, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "20", "2022", "abc", "102"} {
		if b.Area(bad) == nil {
			t.Errorf("no error for area code %q", bad)
		}
	}
	if err := b.Area("907"); err != nil {
		t.Fatal(err)
	}
	if err := b.Done(); err != nil {
		t.Fatal(err)
	}
	if listed, loaded := openSet(t, name).Has("+19075550123"); listed || !loaded {
		t.Error("907 is not loaded")
	}
}

// TestSetMatchesMap checks that a registry agrees with a map.
func TestSetMatchesMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := map[string]bool{}
		var list strings.Builder
		for range rapid.IntRange(1, 40).Draw(rt, "lines") {
			number := fmt.Sprintf("%d%07d", rapid.SampledFrom([]int{200, 202, 999}).Draw(rt, "area"),
				rapid.SampledFrom([]int{2000000, 5550123, 5550124, 9999999}).Draw(rt, "number"))
			action := rapid.SampledFrom([]string{"A", "D"}).Draw(rt, "action")
			want[number] = action == "A"
			fmt.Fprintf(&list, "%s,%s\n", number, action)
		}
		file, err := build(t, "", list.String())
		if err != nil {
			rt.Fatal(err)
		}
		s, err := Open(file)
		if err != nil {
			rt.Fatal(err)
		}
		for number, is := range want {
			if listed, loaded := s.Has("+1" + number); listed != is || !loaded {
				rt.Errorf("%s: listed %v, loaded %v, want %v", number, listed, loaded, is)
			}
		}
		if err := s.Close(); err != nil {
			rt.Error(err)
		}
	})
}

func TestOpenInvalidFile(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "text": strings.Repeat("hello", 5000), "another magic": strings.Repeat("\x00", header),
		"a set beyond the end": magic + strings.Repeat("\x00", 16-len(magic)) + strings.Repeat("\xff", header-16),
	} {
		file := filepath.Join(t.TempDir(), "registry")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(file); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// BenchmarkLoad reports numbers per second for a list of two million numbers, as dense as the national registry.
func BenchmarkLoad(b *testing.B) {
	const n = 2_000_000
	rnd := rand.New(rand.NewPCG(1, 1))
	var list bytes.Buffer
	for area := 201; area <= 205; area++ { // in order, as in the registry
		for i := range n / 5 {
			fmt.Fprintf(&list, "%03d%07d\n", area, 2_000_000+20*i+rnd.IntN(20))
		}
	}
	dir := b.TempDir()
	text := filepath.Join(dir, "list.txt")
	if err := os.WriteFile(text, list.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := Build(filepath.Join(dir, "registry"), "")
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Load(text, nil); err != nil {
			b.Fatal(err)
		}
		if err := r.Done(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mnumbers/s")
}

func BenchmarkHas(b *testing.B) {
	file, err := build(b, "", "2025550123\n3025550123\n")
	if err != nil {
		b.Fatal(err)
	}
	s := openSet(b, file)
	b.ReportAllocs()
	for b.Loop() {
		if listed, _ := s.Has("+12025550123"); !listed {
			b.Fatal("not listed")
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte("2025550123\n202,5550124,D,2026-11-01\n"))
	f.Add([]byte("<list><ac val='202'><ph val='5550123'/></ac></list>"))
	f.Add([]byte(zipOf(f, "a.txt", "2025550123\n")))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := build(t, "", string(content))
		if err != nil {
			return
		}
		s := openSet(t, file)
		for area, n := range s.Areas() {
			if n < 0 || n > 8_000_000 || area < "200" {
				t.Errorf("%s: %d", area, n)
			}
		}
	})
}

// TestNationwideList checks that a nationwide list loads all area codes of the country.
func TestNationwideList(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "list.xml")
	if err := os.WriteFile(list, []byte("<list type='full' level='national' val='US'><ac val='202'><ph val='5550123'/></ac></list>"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Build(filepath.Join(dir, "registry"), "")
	if err != nil {
		t.Fatal(err)
	}
	b.Country([]string{"202", "212", "907"})
	if err := errors.Join(b.Load(list, nil), b.Done()); err != nil {
		t.Fatal(err)
	}
	if a := openSet(t, filepath.Join(dir, "registry")).Areas(); len(a) != 3 || a["202"] != 1 || a["907"] != 0 || b.HasChanges() {
		t.Errorf("%v, changes %v", a, b.HasChanges())
	}
}
