package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-voice/parley/sip/siptest"
)

func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOperatorCommands checks that a running server uses data from commands for the next request, for campaigns and
// single calls.
func TestOperatorCommands(t *testing.T) {
	t.Parallel()
	c := carrier(t, &siptest.Carrier{})
	srv, api := startServer(t, c.Proxy())
	do := func(want string, args ...string) string {
		t.Helper()
		code, out, errs := srv.parley(t, args...)
		if all := out + errs; code != 0 || !strings.Contains(all, want) {
			t.Fatalf("parley %s exits with %d: %s, want %q", strings.Join(args, " "), code, all, want)
		}
		return out
	}
	fails := func(want string, args ...string) {
		t.Helper()
		if code, out, errs := srv.parley(t, args...); code == 0 || !strings.Contains(out+errs, want) {
			t.Errorf("parley %s exits with %d: %s%s, want %q", strings.Join(args, " "), code, out, errs, want)
		}
	}
	environ := []string{"PARLEY_API_URL=" + srv.publicURL, "PARLEY_API_KEY=" + api.Key}
	rows := writeFile(t, "rows.csv", "\ufeffТелефон;name;first_name\n2025550123;Ada;Ada\n2025550124;Bob;Bob\n2025550177;Carl;Carl\n12;Eve;Eve\n=HYPERLINK(1);x;x\n")
	create := func(args ...string) (int, string) {
		t.Helper()
		code, out, errs := srv.parleyAs(t, environ, append([]string{"campaign", "create", "-f", rows, "--agent", "demo", "--pace", "20", "--attest"}, args...)...)
		return code, out + errs
	}

	if code, out := create(); code == 0 || !strings.Contains(out, "market_package_not_installed") {
		t.Errorf("without a market: %d %s", code, out)
	}
	fails("market package not found", "market", "install", "--org", "demo", "mars")
	do("demo uses us-", "market", "install", "--org", "demo", "us")
	do("demo", "market", "list")

	fails("no such registry", "dnc", "load", "--registry", "us", rows)
	fails("line 2", "dnc", "load", "--registry", "us_national", writeFile(t, "bad.txt", "2025550123\nhello\n"))
	do("1 number in 2 area codes", "dnc", "load", "--registry", "us_national", "--area-codes", "212,202", writeFile(t, "list.txt", "2025550123\n"))
	do("us_national", "dnc", "status")
	do("not listed", "dnc", "status", "+12025550124")
	do("suppression list of demo: 1 number", "dnc", "load", "--org", "demo", writeFile(t, "own.csv", "phone\n+1 202 555 0124\n"))
	do("org_suppression", "dnc", "list")

	code, out := create("--name", "first")
	if code != 0 || !strings.Contains(out, "first is draft") || !strings.Contains(out, "5 rows: 3 accepted") || !strings.Contains(out, "2 on a do-not-call list") ||
		!strings.Contains(out, "dnc_matches") || !strings.Contains(out, "row 4") {
		t.Errorf("%d %s", code, out)
	}
	if _, again := create("--name", "first"); !strings.Contains(again, strings.Fields(out)[0]) || !strings.Contains(again, "--again") {
		t.Errorf("a repeated creation: %s", again)
	}
	report := filepath.Join(t.TempDir(), "report.csv")
	if code, out = create("--name", "third", "--dnc", "skip", "--report", report); code != 0 || !strings.Contains(out, "third is running") {
		t.Errorf("%d %s", code, out)
	}
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), "dnc_match") {
		t.Errorf("%s, %v", text, err)
	}
	if code, out = create("--pace", "7"); code != 1 || !strings.Contains(out, "campaign_spec_invalid") {
		t.Errorf("%d %s", code, out)
	}

	for number, list := range map[string]string{"+12025550123": "us_national", "+12025550124": "org_suppression"} {
		err := api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": number}, &struct{}{})
		if err == nil || !strings.Contains(err.Error(), list) || !strings.Contains(err.Error(), "destination_not_allowed") {
			t.Errorf("%s: %v, want %s", number, err, list)
		}
	}
	do("0 numbers", "dnc", "load", "--registry", "us_national", writeFile(t, "changes.txt", "2025550123,D\n"))
	eventually(t, "the number can be called", func() bool {
		return api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": "+12025550123"}, &struct{}{}) == nil
	})

	folder := t.TempDir()
	for _, name := range []string{"package.yaml", "areacodes.csv", "windows.csv", "holidays.csv", "caps.csv"} {
		text, err := os.ReadFile(filepath.Join("campaigns", "market", "us", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), []byte(strings.Replace(string(text), "version: us-", "version: us-ours-", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	do("uses us-ours-", "market", "install", "--org", "demo", folder)
	if code, out = create("--name", "ours"); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	var rules string
	if err := srv.db.Pool.QueryRow(t.Context(), "SELECT rules FROM imports ORDER BY created_at DESC LIMIT 1").Scan(&rules); err != nil || !strings.HasPrefix(rules, "us-ours-") {
		t.Errorf("the list was read with rules %q, %v", rules, err)
	}
	do("0 numbers to query", "dnc", "reassigned", "export", "--org", "demo")
	do("1 result, 1 reassigned", "dnc", "reassigned", "import", "--org", "demo", writeFile(t, "rnd.csv", "2025550188,2024-01-01,yes\n"))
	do("of another market: they make no calls until", "market", "install", "--org", "demo", "kz")
}
