package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"html"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// routes returns all routes with real ids in their paths.
func routes(t *testing.T, h *dashtest.Env, name string) []ui.Route {
	t.Helper()
	return routesTo(t, h, h.Furnish(t, name))
}

// routesTo returns all routes with these ids in their paths.
func routesTo(t *testing.T, h *dashtest.Env, ids map[string]string) []ui.Route {
	t.Helper()
	f, err := h.Dashboard.Frame()
	if err != nil {
		t.Fatal(err)
	}
	var all []ui.Route
	for _, module := range f.Modules {
		for _, r := range module.Routes {
			first, _, _ := strings.Cut(r.Path, "/")
			if strings.Contains(r.Path, "{id}") && ids[first] == "" {
				t.Fatalf("%s: Furnish created no object", r.Path)
			}
			r.Path = strings.NewReplacer("{id}", ids[first], "{version}", "1").Replace(r.Path)
			all = append(all, r)
		}
	}
	if len(all) < 4 {
		t.Fatalf("%d routes: the test is ineffective", len(all))
	}
	return all
}

func state(t *testing.T, h *dashtest.Env) string {
	t.Helper()
	var sum string
	err := h.DB.Pool.QueryRow(t.Context(), `
		SELECT string_agg(c.relname || ' ' || (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) || md5(coalesce(string_agg(t::text, '''' ORDER BY t::text), '''')) AS n FROM %I t', c.relname), false, true, '')))[1]::text, E'\n' ORDER BY c.relname)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'public' AND c.relkind = 'r' AND c.relname NOT IN ('operator_sessions', 'operator_tries')`).Scan(&sum)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestEveryRouteIsGuarded requests all routes without the required session or role.
func TestEveryRouteIsGuarded(t *testing.T) {
	h := dashtest.New(t)
	stranger, viewer, owner, other := h.NewBrowser(t), h.SignIn(t, "vera"), h.SignIn(t, "ada"), h.SignIn(t, "gus")
	all := routes(t, h, "sales")
	before := state(t, h)
	for _, r := range all {
		if r.Show != nil || r.Serve != nil {
			if a := stranger.Get(r.Path); a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Location(), "/dashboard/sign-in") {
				t.Errorf("GET %s without a session: %d %s", r.Path, a.Status, a.Location())
			}
			if a := other.Get(owner.URL(r.Path)); a.Status != http.StatusNotFound {
				t.Errorf("GET %s from another organization: %d", r.Path, a.Status)
			}
			want := http.StatusOK
			switch {
			case r.Root:
				want = http.StatusNotFound // acme is not the root organization
			case strings.HasSuffix(r.Path, "/lend"):
				want = http.StatusConflict // there is no organization to lend to
			case r.Path == "campaigns/columns", r.Path == "campaigns/importing":
				want = http.StatusGone // no upload exists
			case strings.HasSuffix(r.Path, "/next"), strings.HasSuffix(r.Path, "/previous"):
				want = http.StatusSeeOther // to another call
			}
			method := http.MethodGet
			if r.Serve != nil { // a stream would not end
				method = http.MethodHead
			}
			if a := owner.Do(method, r.Path, nil); a.Status != want {
				t.Errorf("GET %s: %d %s", r.Path, a.Status, a.Text())
			}
		}
		if r.Submit == nil && r.Answer == nil {
			continue
		}
		form := func() *strings.Reader { return strings.NewReader("name=x") }
		if a := stranger.Post(r.Path, "name", "x"); a.Status != http.StatusUnauthorized || !strings.Contains(a.Body, `name="sign-in.password"`) {
			t.Errorf("POST %s without a session: %d %s", r.Path, a.Status, a.Text())
		}
		for _, from := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			a := owner.Do(http.MethodPost, r.Path, form(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, from...)...)
			if a.Status != http.StatusForbidden {
				t.Errorf("POST %s from %v: %d", r.Path, from, a.Status)
			}
		}
		if a := other.Post(owner.URL(r.Path), "name", "x"); a.Status != http.StatusNotFound {
			t.Errorf("POST %s from another organization: %d", r.Path, a.Status)
		}
		if r.Role != "viewer" {
			if a := viewer.Post(r.Path, "name", "x"); a.Status != http.StatusForbidden && a.Status != http.StatusNotFound {
				t.Errorf("POST %s as a viewer: %d", r.Path, a.Status)
			}
		}
	}
	if after := state(t, h); after != before {
		t.Errorf("a rejected request changed the database:\n%s\nbefore\n%s", after, before)
	}
}

var (
	inputs = regexp.MustCompile(`<input[^>]*>`)
	named  = regexp.MustCompile(` name="([^"]+)"`)
)

// TestSensitiveFieldsAreNotRefilled checks that passwords and confirmed consent are empty in a rejected form, and in a form
// that is shown again after a sign-in.
func TestSensitiveFieldsAreNotRefilled(t *testing.T) {
	h := dashtest.New(t)
	stranger, owner := h.NewBrowser(t), h.SignIn(t, "ada")
	found := map[string]bool{}
	for _, r := range routes(t, h, "sales") {
		if r.Show == nil || r.Submit == nil {
			continue
		}
		form := []string{"kept", "comes along"}
		for _, input := range inputs.FindAllString(owner.Get(r.Path).Body, -1) {
			name := named.FindStringSubmatch(input)
			if name == nil || !strings.Contains(input, `type="password"`) && (name[1] != "attest" || !strings.Contains(input, `type="checkbox"`)) {
				continue
			}
			found[name[1]] = true
			form = append(form, name[1], "canary")
		}
		if len(form) == 2 {
			continue
		}
		a := stranger.Post(owner.URL(r.Path), form...)
		if a.Status != http.StatusUnauthorized || !strings.Contains(a.Body, "comes along") || strings.Contains(a.Body, "canary") || strings.Contains(a.Body, `name="attest"`) {
			t.Errorf("%s without a session: %d %s", r.Path, a.Status, a.Body)
		}
		a = owner.Post(r.Path, append(form, "sign-in.email", "oscar@example.com", "sign-in.password", string(dashtest.Password))...)
		if a.Status != http.StatusOK || strings.Contains(a.Body, "canary") || regexp.MustCompile(`name="attest"[^>]* checked`).MatchString(a.Body) {
			t.Errorf("%s signed in as another operator: %d %s", r.Path, a.Status, a.Text())
		}
		owner = h.SignIn(t, "ada")
		a = owner.Upload(r.Path, "", "", form...)
		if a.Status != http.StatusUnprocessableEntity || strings.Contains(a.Body, "canary") || regexp.MustCompile(`name="attest"[^>]* checked`).MatchString(a.Body) {
			t.Errorf("%s rejected: %d %s", r.Path, a.Status, a.Text())
		}
	}
	for _, name := range []string{"password", "current_password", "repeat_password", "attest"} {
		if !found[name] {
			t.Errorf("no form has the field %s: the test is ineffective", name)
		}
	}
}

// TestTenantIsolation checks that owners cannot read or change objects of other organizations.
func TestTenantIsolation(t *testing.T) {
	h := dashtest.New(t)
	ids := h.Furnish(t, "sales")
	f, err := h.Dashboard.Frame()
	if err != nil {
		t.Fatal(err)
	}
	gus, before := h.SignIn(t, "gus"), state(t, h)
	for _, module := range f.Modules {
		for _, r := range module.Routes {
			first, _, named := strings.Cut(r.Path, "/")
			// numbers and carrier profiles have no owner, and the trunk is lent
			if !strings.Contains(r.Path, "{id}") || !named || first == "do-not-call" || first == "carriers" || r.Path == "trunks/{id}/subgroup" {
				continue
			}
			path := strings.NewReplacer("{id}", ids[first], "{version}", "1").Replace(r.Path)
			if r.Show != nil || r.Serve != nil {
				if a := gus.Get(path); a.Status != http.StatusNotFound {
					t.Errorf("GET %s: %d %s", path, a.Status, a.Text())
				}
			}
			if r.Submit == nil {
				continue
			}
			a := gus.Post(path, "name", "x", "once", "x", "attest", "on", "lines", "+12125550188", "limit", "5", "role", "viewer", "events", "call_ended", "delivery", "evt_1", "text", "greeting: Hi.",
				"to", "acme", "proxy", "sip:127.0.0.1:5080", "concurrent_calls", "1", "calls_per_minute", "1", "attempts", "1", "interval", "1", "enable", "on")
			if a.Status != http.StatusNotFound {
				t.Errorf("POST %s: %d %s", path, a.Status, a.Text())
			}
		}
	}
	if after := state(t, h); after != before {
		t.Errorf("a rejected request changed the database:\n%s\nbefore\n%s", after, before)
	}
}

// TestHeaders checks that all pages send the security policy.
func TestHeaders(t *testing.T) {
	h := dashtest.New(t)
	for _, a := range []dashtest.Answer{h.NewBrowser(t).Get("/dashboard/sign-in"), h.SignIn(t, "ada").Get("keys"), h.SignIn(t, "ada").Get("nothing")} {
		csp := a.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%d: the policy is %q", a.Status, csp)
		}
		if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Frame-Options") != "DENY" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%d: %v", a.Status, a.Header)
		}
	}
}

// TestAssets checks that assets are immutable and compressed.
func TestAssets(t *testing.T) {
	h := dashtest.New(t)
	b := h.NewBrowser(t)
	found := regexp.MustCompile(`/dashboard/assets/[a-z.0-9-]+`).FindAllString(b.Get("/dashboard/sign-in").Body, -1)
	if len(found) < 4 {
		t.Fatalf("a page loads %v", found)
	}
	for _, path := range found {
		a := b.Do(http.MethodGet, path, nil, "Accept-Encoding", "gzip")
		if a.Status != http.StatusOK || a.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", path, a.Status, a.Header)
		}
		if again := b.Do(http.MethodGet, path, nil, "If-None-Match", a.Header.Get("Etag")); again.Status != http.StatusNotModified {
			t.Errorf("%s again: %d", path, again.Status)
		}
	}
	if a := b.Get("/dashboard/assets/../frame.go"); a.Status != http.StatusNotFound {
		t.Errorf("an unknown asset: %d", a.Status)
	}
}

// maxPageSize is the size limit of a page with its styles, scripts and icon, compressed. docs/dashboard.md has the largest size.
const maxPageSize = 32 << 10

// packedSize returns the size of a text in bytes after compression.
func packedSize(t *testing.T, text string) int {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, text)
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Len()
}

// TestPageSizes checks the size of each page of an organization with long lists, and that all it loads is from this server.
func TestPageSizes(t *testing.T) {
	h := dashtest.New(t)
	all := routesTo(t, h, h.FurnishMany(t))
	h.FurnishFigures(t, 2000)
	b := h.SignIn(t, "ada")
	loads := regexp.MustCompile(`<(?:link|script|img|audio|iframe|source)\b[^>]*? (?:href|src)="([^"]+)"`)
	client, err := os.ReadFile("../../webrtc/jsclient/parley.js")
	if err != nil {
		t.Fatal(err)
	}
	assets := map[string]int{} // sizes by path
	for _, r := range all {
		if r.Show == nil || r.Root || strings.HasSuffix(r.Path, "/lend") || r.Path == "campaigns/columns" || r.Path == "campaigns/importing" {
			continue
		}
		a := b.Get(r.Path)
		if a.Status != http.StatusOK {
			t.Errorf("%s: %d %s", r.Path, a.Status, a.Text())
			continue
		}
		page := packedSize(t, a.Body)
		size := page
		for _, m := range loads.FindAllStringSubmatch(a.Body, -1) {
			path := html.UnescapeString(m[1])
			if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "data:") {
				t.Errorf("%s loads %.80s", r.Path, path)
			}
			if !strings.HasPrefix(path, "/dashboard/assets/") { // a recording or a generated picture
				continue
			}
			if assets[path] == 0 {
				text := b.Get(path).Body
				assets[path] = packedSize(t, text)
				if strings.Contains(text, `import("/rtc/parley.js")`) {
					text = strings.ReplaceAll(text, `import("/rtc/parley.js")`, "")
					assets[path] += packedSize(t, string(client))
				}
				if strings.Contains(text, "url(") || strings.Contains(text, "@import") || strings.Contains(text, "import(") {
					t.Errorf("%s loads more files", path)
				}
			}
			size += assets[path]
		}
		t.Logf("%-60s %6d bytes compressed, %6d without assets", r.Path, size, page)
		if size > maxPageSize {
			t.Errorf("%s has %d bytes", r.Path, size)
		}
	}
	if len(assets) < 8 {
		t.Errorf("%d assets: the test is ineffective", len(assets))
	}
}
