package market

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func load(tb testing.TB, code string) *Package {
	tb.Helper()
	p, err := Load(code)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func zone(tb testing.TB, name string) *time.Location {
	tb.Helper()
	l, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// locate returns the location of a number for which the client named no state and no zone.
func locate(tb testing.TB, p *Package, number string) Location {
	tb.Helper()
	n, err := p.Read(number)
	if err != nil || n.Refusal != Callable {
		tb.Fatalf("%s: %v, %q", number, err, n.Refusal)
	}
	pl, err := p.Locate(n, "", "")
	if err != nil {
		tb.Fatal(err)
	}
	return pl
}

// TestLegal checks testdata/us.txt, which was written from the statutes, not from the
// tables of the package.
func TestLegal(t *testing.T) {
	us := load(t, "us")
	f, err := os.Open("testdata/us.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, states := 0, map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		c := strings.Fields(s.Text())
		at, err := time.ParseInLocation("2006-01-02 15:04", c[1]+" "+c[2], zone(t, c[3]))
		if err != nil {
			t.Fatal(err)
		}
		pl := locate(t, us, c[0])
		v := us.Legal(at, pl, Classification(c[4]))
		if v.Legal != (c[5] == "legal") {
			t.Errorf("%s\n\tgot %+v in %+v", s.Text(), v, pl)
		}
		if v.Version != us.Version || !v.Legal && (v.Reason == "" || v.Rule == "") {
			t.Errorf("%s: verdict without a reason: %+v", s.Text(), v)
		}
		rows++
		states[pl.States[0]] = true
	}
	if rows < 150 {
		t.Errorf("%d rows", rows)
	}
	for state := range us.windows {
		if state != "US" && !states[state] {
			t.Errorf("no row tests %s, which has its own rules", state)
		}
	}
}

func TestRead(t *testing.T) {
	us, kz := load(t, "us"), load(t, "kz")
	for _, c := range []struct {
		market  *Package
		raw     string
		want    string // E.164; empty if the text is not a number
		refusal Refusal
	}{
		{us, "2125550123", "+12125550123", Callable},
		{us, "(212) 555-0123", "+12125550123", Callable},
		{us, "1-212-555-0123", "+12125550123", Callable},
		{us, "+1 212 555 0123", "+12125550123", Callable},
		{us, "4165550123", "+14165550123", CountryUnsupported}, // a number in Toronto
		{us, "+18765550123", "+18765550123", CountryUnsupported},
		{us, "+77012345678", "+77012345678", CountryUnsupported},
		{us, "+442071838750", "+442071838750", CountryUnsupported},
		{us, "8005550123", "+18005550123", TypeUnsupported},
		{us, "9005550123", "+19005550123", TypeUnsupported},
		{us, "5005550123", "+15005550123", TypeUnsupported},
		{us, "7295550123", "+17295550123", Callable}, // newer than the data of the library
		{us, "+7875550123", "", ""},
		{us, "7875550123", "+17875550123", Callable}, // a number in Puerto Rico
		{us, "911", "", ""},
		{us, "2129110123", "", ""},
		{us, "1125550123", "", ""},
		{us, "2121550123", "", ""},
		{us, "12-34", "", ""},
		{us, "", "", ""},
		{us, "+1 212 555 0123 ext. 5", "", ""},
		{us, "(212) 555-0123 x12", "", ""},
		{us, "2125550123#9", "", ""},
		{us, "2125550123.0", "+12125550123", Callable},
		{us, "12125550123.00", "+12125550123", Callable},
		{us, "212-555-0123.0", "+12125550123", Callable},
		{us, "212.555.0123", "+12125550123", Callable},
		{us, "2125550123.5", "", ""},
		{kz, "7012345678.0", "+77012345678", Callable},
		{us, "+12125550123;ext=5", "", ""},
		{us, "+121255501231", "", ""},
		{kz, "8 701 234 56 78 доб. 12", "", ""},
		{us, strings.Repeat("2", 400), "", ""},
		{us, "+881612345678", "+881612345678", CountryUnsupported}, // a satellite number
		{kz, "87012345678", "+77012345678", Callable},
		{kz, "7012345678", "+77012345678", Callable},
		{kz, "+7 727 234 56 78", "+77272345678", Callable},
		{kz, "+79161234567", "+79161234567", CountryUnsupported}, // a number in Moscow
		{kz, "+12125550123", "+12125550123", CountryUnsupported},
		{kz, "112", "", ""},
	} {
		n, err := c.market.Read(c.raw)
		if n.E164 != c.want || n.Refusal != c.refusal || (err == nil) != (c.want != "") {
			t.Errorf("%s %.20q: %+v, %v; want %q %q", c.market.Code, c.raw, n, err, c.want, c.refusal)
		}
	}
}

// TestNextOpen checks that the time at which a location opens is legal, and the minutes before it are
// not.
func TestNextOpen(t *testing.T) {
	us := load(t, "us")
	var numbers []string
	for code := range us.areas {
		numbers = append(numbers, "+1"+code+"5550123")
	}
	slices.Sort(numbers)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom(numbers).Draw(t, "number")
		class := rapid.SampledFrom(Classifications()).Draw(t, "class")
		at := start.Add(time.Duration(rapid.IntRange(0, 3*365*24*60).Draw(t, "minute")) * time.Minute)
		n, err := us.Read(number)
		if err != nil {
			t.Fatal(err)
		}
		pl, err := us.Locate(n, "", "")
		if err != nil {
			t.Fatal(err)
		}
		opens, ok := us.NextOpen(at, pl, class)
		if never := us.NeverLegal(at, pl, class); ok == never {
			t.Fatalf("opens: %v, never: %v", ok, never)
		}
		if !ok {
			return
		}
		if opens.Before(at) || !us.Legal(opens, pl, class).Legal {
			t.Fatalf("%v, the opening after %v, is not legal: %+v", opens, at, us.Legal(opens, pl, class))
		}
		for back := time.Minute; back <= opens.Sub(at); back += 7 * time.Minute {
			if us.Legal(opens.Add(-back), pl, class).Legal {
				t.Fatalf("%v was legal, before %v", opens.Add(-back), opens)
			}
		}
	})
}

func TestFloor(t *testing.T) {
	us, kz := load(t, "us"), load(t, "kz")
	at := time.Date(2026, 7, 15, 12, 0, 0, 0, time.UTC)
	ri, ny := locate(t, us, "+14015550123"), locate(t, us, "+12125550123")
	if w := us.Floor(at, []Location{ri, ri}, Marketing, Week{}); w[0] != (Hours{540, 1080}) || w[5] != (Hours{600, 1020}) || !w[6].IsEmpty() {
		t.Errorf("all in Rhode Island: %v", w)
	}
	for _, places := range [][]Location{nil, {ri, ny}, {ny}} {
		if w := us.Floor(at, places, Marketing, Week{}); w[0] != (Hours{480, 1260}) || w[6] != (Hours{480, 1260}) {
			t.Errorf("%v: %v", places, w)
		}
	}
	office := Always()
	for i := range office {
		office[i] = Hours{600, 1080}
	}
	if w := kz.Floor(at, nil, Servicing, office); w != office {
		t.Errorf("Kazakhstan: %v", w)
	}
	if w := kz.Floor(at, nil, DebtCollection, office); w[0] != office[0] || !w[6].IsEmpty() {
		t.Errorf("Kazakhstan, debts: %v", w)
	}
}

func TestCaps(t *testing.T) {
	us, kz := load(t, "us"), load(t, "kz")
	for _, c := range []struct {
		market *Package
		number string
		class  Classification
		want   string
	}{
		{us, "+12025550123", Marketing, "daily 3/24h0m0s market_default, rolling_7d 7/168h0m0s market_default"},
		{us, "+13055550123", Marketing, "daily 3/24h0m0s market_default, rolling_7d 7/168h0m0s market_default, state_24h 3/24h0m0s law"},
		{us, "+13055550123", Servicing, "daily 3/24h0m0s market_default"},
		{us, "+12075550123", Marketing, "daily 3/24h0m0s market_default, rolling_7d 7/168h0m0s market_default, state_24h 1/8h0m0s law"},
		{us, "+12025550123", DebtCollection, "daily 2/24h0m0s market_default, rolling_7d 7/168h0m0s law, post_conversation_7d 0/168h0m0s law"},
		{us, "+16175550123", DebtCollection, "daily 2/24h0m0s market_default, rolling_7d 2/168h0m0s law, post_conversation_7d 0/168h0m0s law"},
		{kz, "+77012345678", DebtCollection, "daily 3/day law"},
	} {
		var got []string
		for _, x := range c.market.Caps(locate(t, c.market, c.number), c.class) {
			within := x.Within.String()
			if x.CalendarDay {
				within = "day"
			}
			got = append(got, x.Kind+" "+string(rune('0'+x.Most))+"/"+within+" "+x.Source)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s %s: %s; want %s", c.number, c.class, s, c.want)
		}
	}
}

// TestLocate checks that a state or zone named by the client only narrows the legal hours.
func TestLocate(t *testing.T) {
	us := load(t, "us")
	n, err := us.Read("+12125550123")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 7, 15, 9, 30, 0, 0, zone(t, "America/New_York"))
	for _, c := range []struct {
		state, zone string
		legal       bool
	}{
		{"", "", true}, {"NY", "", true}, {"ky", "", false}, {"", "America/Los_Angeles", false}, {"TX", "America/Chicago", false}, {"", "America/Chicago", true},
	} {
		pl, err := us.Locate(n, c.state, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if v := us.Legal(noon, pl, Marketing); v.Legal != c.legal {
			t.Errorf("%q %q: %+v in %+v", c.state, c.zone, v, pl)
		}
	}
	for _, bad := range [][2]string{{"XX", ""}, {"", "Mars/Olympus"}, {"New York", ""}} {
		if _, err := us.Locate(n, bad[0], bad[1]); err == nil {
			t.Errorf("no error for %v", bad)
		}
	}
	if v := us.Legal(noon, Location{}, Marketing); v.Legal || v.Reason != NoZone {
		t.Errorf("no location: %+v", v)
	}
}

func TestDisclosures(t *testing.T) {
	for _, code := range Codes() {
		p := load(t, code)
		if len(p.Languages()) < 2 {
			t.Errorf("%s: disclosures in %v", code, p.Languages())
		}
		for _, l := range p.Languages() {
			text := p.Disclosure(l+"-XX").Text("Ada", "Acme", true)
			if strings.Count(text, "Ada") != 1 || strings.Count(text, "Acme") != 1 || strings.Contains(text, "{{") ||
				p.Disclosure(l).Text("Ada", "Acme", false) == text || l != p.language && text == p.Disclosure("").Text("Ada", "Acme", true) {
				t.Errorf("%s, %s: %q", code, l, text)
			}
		}
		for _, l := range p.Languages() {
			if key := p.Disclosure(l).Key(); key != "9" {
				t.Errorf("%s, %s: the key is %q", code, l, key)
			}
		}
		if len(p.Phrases()) < 10 || (Disclosure{OptOut: "press 9, or 8"}).Key() != "" || (Disclosure{OptOut: "say so"}).Key() != "" {
			t.Errorf("%s: phrases %q", code, p.Phrases())
		}
		if p.Disclosure("tlh").OptOut != p.Disclosure(p.language).OptOut || p.Disclosure("").OptOut == "" {
			t.Errorf("%s: no disclosure in an unknown language", code)
		}
	}
	if _, err := Load("mars"); err == nil {
		t.Error("an unknown package is loaded")
	}
}

// TestReadErrors checks that errors of a package name the file.
func TestReadErrors(t *testing.T) {
	for _, c := range []struct{ file, old, put, want string }{
		{"package.yaml", "code: us", "code: mars", "package.yaml: code"},
		{"package.yaml", "version: us-", "version: ", "package.yaml: version"},
		{"package.yaml", "region: US", "area: US", "package.yaml"},
		{"package.yaml", "language: en", "language: fr", "package.yaml: language"},
		{"package.yaml", "opt_out: \"If", "optout: \"If", "package.yaml"},
		{"windows.csv", "08:00-21:00", "8-21", "windows.csv, row"},
		{"areacodes.csv", "America/New_York", "America/Gotham", "areacodes.csv, row"},
		{"holidays.csv", "easter", "ester", "holidays.csv, row"},
		{"caps.csv", "24h", "24", "caps.csv, row"},
	} {
		files := Files("us")
		if !strings.Contains(files[c.file], c.old) {
			t.Errorf("%s has no %q", c.file, c.old)
		}
		files[c.file] = strings.ReplaceAll(files[c.file], c.old, c.put)
		if _, err := Read(files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %q: %v, want %q", c.file, c.put, err, c.want)
		}
	}
	for _, name := range FileNames() {
		files := Files("us")
		delete(files, name)
		if _, err := Read(files); name != "areacodes.csv" && (err == nil || !strings.Contains(err.Error(), name)) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if n := len(load(t, "us").Areas()); n < 365 || len(load(t, "kz").Areas()) > 0 {
		t.Errorf("%d area codes", n)
	}
}

func TestEaster(t *testing.T) {
	for year, want := range map[int]string{2024: "03-31", 2025: "04-20", 2026: "04-05", 2027: "03-28", 2038: "04-25", 2285: "03-22"} {
		if got := easter(year).Format("01-02"); got != want {
			t.Errorf("%d: %s, want %s", year, got, want)
		}
	}
}

func TestParseDay(t *testing.T) {
	for s, want := range map[string]string{
		"07-04": "07-04", "mon 3 01": "01-19", "mon last 05": "05-25", "easter -2": "04-03",
		"thu 4 11 +1": "11-27", "mon 1 11 +1": "11-03", "fri last 04": "04-24",
	} {
		day, err := parseDay(s)
		if err != nil || day(2026).Format("01-02") != want {
			t.Errorf("%q: %v, want %s", s, err, want)
		}
	}
	for _, bad := range []string{"", "13-01", "mon 5 01", "mon 0 01", "xyz 1 01", "mon 1 13", "easter x", "07-04 +1 +2", "unm 1 01"} {
		if _, err := parseDay(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"2125550123", "+7 701 234 56 78", "911", "٠١٢", "+1(212)555-0123;ext=5", "tel:+12125550123"} {
		f.Add(s)
	}
	us, kz := load(f, "us"), load(f, "kz")
	f.Fuzz(func(t *testing.T, raw string) {
		for _, p := range []*Package{us, kz} {
			n, err := p.Read(raw)
			if err != nil {
				continue
			}
			if again, err := p.Read(n.E164); err != nil || again != n {
				t.Errorf("%q is %+v, which is %+v, %v", raw, n, again, err)
			}
			if n.Refusal == Callable {
				if pl, err := p.Locate(n, "", ""); err != nil || len(pl.Zones) == 0 {
					t.Errorf("%q has no location: %+v, %v", raw, pl, err)
				}
			}
		}
	})
}
