package campaigns_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

// TestMapColumns checks that the page has each column and the number of rows by result; it continues only if a row can be called.
func TestMapColumns(t *testing.T) {
	h := dashtest.New(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	for _, c := range []struct {
		name, file string
		has        string // expected texts of the page, separated by bars
		on         bool   // the page lets the operator continue
	}{
		{"a short first row", "phone,name,amount\n2125550101\n2125550102,Ada,5\n", "phone|name|amount|2 Rows|2 Will be called|0 Skipped|0 Duplicates|0 Invalid", true},
		{"no row", "phone,name,amount\n", "phone|name|amount|0 Rows|header line and no rows", false},
		{"no callable row", "phone\n+442071838750\n8005550106\n12\n", "3 Rows|0 Will be called|2 Skipped|1 Invalid|No row can be called", false},
		{
			"each kind", "Mobile,name\n2125550101,Ada\n+1 212 555 0101,Ada\n+442071838750,Tom\nnone,Eve\n2125550102.0,Bob\n",
			"5 Rows|2 Will be called|1 Skipped|1 Duplicate|1 Invalid", true,
		},
		{"Windows-1252", "phone,name\n2125550101,Jos\xe9\n", "1 Will be called|read as Windows-1252|José", true},
		{"two columns of phones", "Mobile,Phone\n2125550101,2125550102\n", "1 Will be called|Several columns look like phone numbers. Calls go to Phone, not Mobile.", true},
		{"no phone", "a,b\n1,2\n", "No column maps to phone", false},
	} {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		part, err := w.CreateFormFile("rows", "list.csv")
		if err == nil {
			_, err = io.WriteString(part, c.file)
		}
		if err = errors.Join(err, w.WriteField("once", c.name), w.Close()); err != nil {
			t.Fatal(err)
		}
		_, query, _ := strings.Cut(b.Do("POST", "campaigns/new", &body, "Content-Type", w.FormDataContentType(), "Sec-Fetch-Site", "same-origin").Location(), "?")
		a := b.Get("campaigns/columns?" + query)
		text := strings.Join(strings.Fields(a.Text()), " ")
		for want := range strings.SplitSeq(c.has, "|") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", c.name, want, text)
			}
		}
		if on := strings.Contains(a.Body, `formaction="/dashboard/`) && !strings.Contains(a.Body, "disabled>"); on != c.on {
			t.Errorf("%s: continues: %v, want %v", c.name, on, c.on)
		}
	}
}

// TestBackgroundImport checks that a large list is imported once in the background; a page shows the progress and links to the
// campaign.
func TestBackgroundImport(t *testing.T) {
	h, imports := dashtest.NewWithImports(t)
	h.AddSales(t, "us", true)
	b := h.SignIn(t, "oscar")
	var list strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&list, "+1212555%04d,%s\n", i, strings.Repeat("Ada ", 40))
	}
	_, upload, _ := strings.Cut(b.Post("campaigns/new", "once", "l", "lines", list.String()).Location(), "?")
	form := []string{"once", "a", "name", "Spring", "agent", "sales", "classification", "marketing", "pace", "20", "attempts", "1", "interval", "15", "duplicates", "keep_first"}
	if a := b.Post("campaigns/draft?"+upload, append([]string{"ends", "2020-01-01T10:00"}, form...)...); a.Status != http.StatusUnprocessableEntity && a.Status != http.StatusSeeOther {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	if a := b.Post("campaigns/draft?"+upload, "once", "b", "name", "", "agent", "sales", "classification", "marketing", "pace", "20", "attempts", "1", "interval", "15"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("without a name: %d", a.Status)
	}
	form[1] = "c"
	to := b.Post("campaigns/draft?"+upload, form...).Location()
	if again := b.Post("campaigns/draft?"+upload, form...).Location(); !strings.Contains(to, "/importing?id=lim_") || again != to {
		t.Fatalf("the form leads to %q, its repetition to %q", to, again)
	}
	if a := b.Get(to); !strings.Contains(a.Text(), "Waiting for other imports") || !strings.Contains(a.Body, `data-live="1"`) || !strings.Contains(a.Body, "<progress") {
		t.Errorf("queued: %s", a.Text())
	}
	h.Exec(t, "DELETE FROM list_imports WHERE NOT id = $1", to[strings.LastIndex(to, "=")+1:])
	if some, err := imports.Next(t.Context()); !some || err != nil {
		t.Fatal(some, err)
	}
	if a := b.Get(to); !strings.Contains(a.Text(), "Draft created") || strings.Contains(a.Body, "data-live") || !strings.Contains(a.Body, "/campaigns/cmp_") {
		t.Errorf("done: %s", a.Text())
	}
	var contacts, campaigns int
	if err := h.DB.Pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM contacts), (SELECT count(*) FROM campaigns)").Scan(&contacts, &campaigns); err != nil || contacts != 2000 || campaigns != 1 {
		t.Errorf("%d contacts, %d campaigns, %v", contacts, campaigns, err)
	}
	if a := h.SignIn(t, "gus").Get(strings.Replace(to, h.Acme, h.Globex, 1)); a.Status != http.StatusGone {
		t.Errorf("another organization: %d", a.Status)
	}
}
