package phonenumber

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestForms(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{"2025550123", "12025550123"},
		{"12025550123", "2025550123"},
		{"01112025550123", "12025550123"},
		{"0012025550123", "2025550123"},
		{"87011234567", "77011234567"},
		{"77011234567", "87011234567"},
		{"810442071838750", "442071838750"},
		{"81077010000001", "77010000001"},
		{"901177010000001", "87010000001"},
	} {
		if !slices.Contains(Forms(tt.a), tt.b) {
			t.Errorf("%s is not known as %s: %v", tt.a, tt.b, Forms(tt.a))
		}
		if !slices.Contains(Forms(tt.b), tt.a) {
			t.Errorf("%s is not known as %s: %v", tt.b, tt.a, Forms(tt.b))
		}
	}
	if slices.Contains(Forms("17012345678"), "77012345678") {
		t.Error("North Dakota is not Kazakhstan")
	}
}

// TestFormsAreSymmetric checks that each form of a number has all other forms of the number.
func TestFormsAreSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.StringMatching(`(00|011|810|9011)?[0-9]{1,15}`).Draw(t, "digits")
		all := Forms(d)
		for _, same := range all {
			back := Forms(same)
			if !slices.Contains(back, same) {
				t.Fatalf("%s is not itself: %v", same, back)
			}
			for _, other := range all {
				if other != d && !slices.Contains(back, other) {
					t.Fatalf("%s is %v, but %s is %v", d, all, same, back)
				}
			}
		}
	})
}

func TestDialable(t *testing.T) {
	for number, want := range map[string]error{
		"+12025550150": nil, "1 (202) 555-0150": nil, "2025550150": nil, "tel:+1-202-555-0150": nil, "+1 202 555 0150 x": nil, "+1 202 555 0150 home": nil,
		"+442071838750": nil, "+44 20 7183 8750": nil, "+7 701 123 45 67": nil, "87011234567": nil, "810 44 20 7183 8750": nil, "011 1 202 555 0150": nil,
		"+49 30 123456": nil, "+4930123456789": nil, "+390612345678": nil, "+1a202b555c0150": nil,

		"+1 202 555 0150 ext 5": ErrExtension, "+1 (202) 555-0150 x12": ErrExtension, "2025550150#9": ErrExtension, "+12025550150;ext=7": ErrExtension,
		"+12025550150,,5": ErrExtension, "+7 701 123-45-67 доб. 12": ErrExtension, "8 701 123 45 67 доб 1": ErrExtension, "+442071838750x1": ErrExtension,
		"00 1 202 555 0150 ext. 5": ErrExtension, "+12025550150*5": ErrExtension, "+12025550150 p 5": ErrExtension,

		"+120255501501": ErrLength, "+1202555015": ErrLength, "+1202555O199": ErrLength, "+1 555 1212": ErrLength, "+7 701 123 45 67 8": ErrLength,
		"+44 20": ErrLength, "+99912345678": ErrLength, "02071838750": ErrLength, "": ErrLength, "call me": ErrLength, "12025550150.0": ErrLength,
		"810 1 202 555 0150 1": ErrLength,
	} {
		if _, err := Dialable(number); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", number, err, want)
		}
	}
}

// TestLongText checks that a text of one megabyte is read in linear time.
func TestLongText(t *testing.T) {
	const size = 1 << 20
	began := time.Now()
	for _, s := range []string{
		strings.Repeat("1", 17) + strings.Repeat("x", size) + "1",
		"+12025550" + strings.Repeat("x", size) + "1",
		strings.Repeat("00", 20) + strings.Repeat("x", size) + "1",
		strings.Repeat("0", size) + "x1",
	} {
		if base, extension := Base(s); extension || base != s {
			t.Errorf("%.20s: base %.20q", s, base)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if got := SuppressionDigits("+1 202 555 0150" + strings.Repeat(" ", size) + "ext 5"); got != "12025550150" {
		t.Errorf("an extension far behind: %.40q", got)
	}
}

func TestSuppressionDigits(t *testing.T) {
	for number, want := range map[string]string{
		"+1 202 555 0150 ext 5": "12025550150", "2025550150#9": "2025550150", "+7 701 123-45-67 доб. 12": "77011234567", "+442071838750x1": "442071838750",
		"2025550114.0": "2025550114", "202-555-0114.0": "2025550114", "+33.1.23.45.67.00": "33123456700", "+12025550114.00": "12025550114", "202.555.0114": "2025550114", "+1 202 555 0150 x": "12025550150", "": "",
	} {
		if got := SuppressionDigits(number); got != want {
			t.Errorf("%q is %s, want %s", number, got, want)
		}
	}
}

// TestListedFormsAreSymmetric checks that a number on a list is found in every other form, and that ten digits match
// the numbers of both countries.
func TestListedFormsAreSymmetric(t *testing.T) {
	for _, pair := range [][2]string{{"7011234567", "77011234567"}, {"7011234567", "87011234567"}, {"7011234567", "17011234567"}, {"2025550150", "12025550150"}} {
		if !slices.Contains(ListedForms(pair[0]), pair[1]) || !slices.Contains(ListedForms(pair[1]), pair[0]) {
			t.Errorf("%s and %s are not the same", pair[0], pair[1])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.StringMatching(`(00|011|810|9011)?[0-9]{1,15}`).Draw(t, "digits")
		for _, same := range ListedForms(d) {
			if !slices.Contains(ListedForms(same), d) && slices.Contains(Forms(d), d) && d == PlainForms(d)[0] {
				t.Fatalf("%s is not found for %s", d, same)
			}
		}
	})
}

func FuzzDialable(f *testing.F) {
	f.Add("+1 202 555 0150 ext 5")
	f.Add("8 701 123 45 67 доб. 5")
	f.Fuzz(func(t *testing.T, s string) {
		digits, err := Dialable(s)
		if err == nil && SuppressionDigits(s) != digits {
			t.Errorf("%q is dialed as %s and protected as %s", s, digits, SuppressionDigits(s))
		}
	})
}
