package dnc_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/store"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestSuppressionList checks that numbers are added, uploaded, replaced and removed; opt-outs stay.
func TestSuppressionList(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "oscar")
	for _, bad := range []string{"", "12", "abc"} {
		if a := b.Post("do-not-call/add", "number", bad); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `id="f-number-error"`) {
			t.Errorf("%q: %d", bad, a.Status)
		}
	}
	b.Follow("do-not-call/add", "number", "+1 (202) 555-0101")
	if a := b.Follow("do-not-call/add", "number", "12025550101"); !strings.Contains(a.Text(), "already") {
		t.Errorf("%s", a.Text())
	}
	listed := func(number string) bool {
		t.Helper()
		v, err := (&store.Store{Pool: h.DB.Pool}).Screen(t.Context(), control.Number{OrgID: h.Acme, Digits: number}, control.ForCall)
		if err != nil {
			t.Fatal(err)
		}
		return v.List != ""
	}
	if !listed("12025550101") {
		t.Error("an added number can be called")
	}
	a := b.Upload("do-not-call/upload", "../../opt outs.csv", "+12025550102\n12025550103\n", "once", "a")
	if a.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	if page := b.Get("do-not-call"); !strings.Contains(page.Text(), "2 numbers added, 0 removed. Total: 3.") || !strings.Contains(page.Text(), "opt outs.csv") || !strings.Contains(page.Text(), "oscar@example.com") {
		t.Errorf("%s", page.Text())
	}
	if b.Upload("do-not-call/upload", "opt outs.csv", "+12025550102\n12025550103\n", "once", "a"); !strings.Contains(b.Get("do-not-call").Text(), "2 numbers added, 0 removed") {
		t.Error("a repeated form is loaded again")
	}
	if a = b.Upload("do-not-call/upload", "opt outs.csv", "+12025550102\n12025550109\n", "once", "a"); a.Status != http.StatusUnprocessableEntity || listed("12025550109") {
		t.Errorf("another list with the same form: %d %s", a.Status, a.Text())
	}
	if a = b.Upload("do-not-call/upload", "opt outs.csv", "12025550109\n"); a.Status != http.StatusUnprocessableEntity || listed("12025550109") {
		t.Errorf("a form without its key: %d %s", a.Status, a.Text())
	}
	if page := b.Get("do-not-call?number=%2B12025550102"); !strings.Contains(page.Text(), "Suppression list listed") {
		t.Errorf("%s", page.Text())
	}
	for name, text := range map[string]string{"": "", "empty.csv": "", "short.txt": "12025550105\n12\n"} {
		if a = b.Upload("do-not-call/upload", name, text, "once", "b"); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `id="f-file-error"`) || strings.Contains(a.Body, "/tmp") {
			t.Errorf("%s: %d %s", name, a.Status, a.Text())
		}
	}
	h.Exec(t, "INSERT INTO opt_outs (org_id, number, call_id, source, asked_at) VALUES ($1, '12025550102', 'call_1', 'key', now())", h.Acme)
	if a = b.Post("do-not-call/numbers/12025550102/remove"); a.Status != http.StatusUnprocessableEntity || !listed("12025550102") {
		t.Errorf("an opt-out is removed: %d", a.Status)
	}
	b.Follow("do-not-call/numbers/12025550103/remove")
	if listed("12025550103") {
		t.Error("a removed number is listed")
	}
	if a = b.Post("do-not-call/numbers/12025550199/remove"); a.Status != http.StatusNotFound {
		t.Errorf("an unknown number: %d", a.Status)
	}
	b.Upload("do-not-call/upload", "new.txt", "12025550104\n", "replace", "on", "once", "c")
	if all, err := dnc.OwnNumbers(t.Context(), h.DB.Pool, h.Acme, "", 9); err != nil || len(all) != 2 || !all[0].OptedOut || all[1].Number != "12025550104" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestRegistries checks that only owners of the root organization load registries, once per form.
func TestRegistries(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Root = "acme" })
	ada := h.SignIn(t, "ada")
	form := []string{"registry", "us_national", "areas", "202", "downloaded", "2026-11-01", "once", "a"}
	if a := h.SignIn(t, "gus").Upload("do-not-call/registry", "r.txt", "2025550101\n", form...); a.Status != http.StatusNotFound {
		t.Errorf("another organization loads a registry: %d", a.Status)
	}
	if a := ada.Upload("do-not-call/registry", "r.txt", "2025550101\n", form...); a.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.Status, a.Text())
	}
	if a := ada.Upload("do-not-call/registry", "r.txt", "2025550101\n", form...); a.Status != http.StatusSeeOther {
		t.Errorf("repeated: %d %s", a.Status, a.Text())
	}
	if loads := h.Count(t, "SELECT count(*) FROM audit_log WHERE action = 'suppression.load'"); loads != 1 {
		t.Errorf("loaded %d times", loads)
	}
	if a := ada.Upload("do-not-call/registry", "r.txt", "2025550102\n", form...); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("another list with the same form: %d %s", a.Status, a.Text())
	}
	if page := ada.Get("do-not-call"); !strings.Contains(page.Text(), "us_national") || !strings.Contains(page.Text(), "1 of ") {
		t.Errorf("%s", page.Text())
	}
	for field, bad := range map[string]string{"registry": "mars", "downloaded": "yesterday"} {
		pairs := append([]string{}, form[:len(form)-1]...)
		pairs = append(pairs, bad)
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == field {
				pairs[i+1] = bad
			}
		}
		if a := ada.Upload("do-not-call/registry", "r.txt", "2025550101\n", pairs...); a.Status != http.StatusUnprocessableEntity || !strings.Contains(a.Body, `id="f-`+field+`-error"`) {
			t.Errorf("%s %q: %d %s", field, bad, a.Status, a.Text())
		}
	}
}

// TestPastLoads checks that older loads are on further pages.
func TestPastLoads(t *testing.T) {
	h := dashtest.New(t)
	h.Exec(t, `INSERT INTO list_loads (name, org_id, files, sha256, replaced, added, deleted, numbers, downloaded_at, loaded_by)
		SELECT 'org_suppression', $1, ARRAY['list-' || n || '.csv'], '{}', false, 1, 0, n, now(), 'oscar@example.com' FROM generate_series(1, 26) n`, h.Acme)
	b := h.SignIn(t, "vera")
	first := b.Get("do-not-call")
	_, rest, _ := strings.Cut(first.Body, `<nav class="more" aria-label="Pagination"><a class="button" href="`)
	next, _, found := strings.Cut(rest, `#loads" rel="next">`)
	if !found || !strings.Contains(first.Body, "list-26.csv") || strings.Contains(first.Body, "list-1.csv") {
		t.Fatalf("the first page: %s", first.Text())
	}
	if last := b.Get(next); !strings.Contains(last.Body, "list-1.csv") || strings.Contains(last.Body, "list-2.csv") || strings.Contains(last.Body, `rel="next"`) {
		t.Errorf("the last page: %s", last.Text())
	}
}

// TestUploadsLeaveNoFiles checks that a rejected upload leaves no temporary file.
func TestUploadsLeaveNoFiles(t *testing.T) {
	h := dashtest.New(t)
	b := h.SignIn(t, "oscar")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if a := b.Upload("do-not-call/upload", "numbers.csv", strings.Repeat("\x00", 2<<20), "once", "a"); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", a.Status, a.Text())
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}
