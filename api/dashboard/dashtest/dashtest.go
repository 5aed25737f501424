// Package dashtest serves the dashboard to tests with a real database.
package dashtest

import (
	"bytes"
	"html"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard"
	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/media"
)

// Password is the password of all operators.
const Password media.Secret = "correct horse battery"

// An Env is a dashboard with two organizations.
type Env struct {
	DB   *db.DB
	URL  string
	Acme string // IDs of the organizations
	// acme's operators have no access to Globex.
	Globex string

	Dashboard *dashboard.Dashboard
	// Outer wraps the handler of the dashboard, to serve other pages beside it. New uses it; nil serves the dashboard alone.
	Outer func(http.Handler) http.Handler
}

// Exec executes a statement.
func (h *Env) Exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := h.DB.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%.60s: %v", sql, err)
	}
}

// Count returns the number that a query selects.
func (h *Env) Count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	return scan[int](t, h, sql, args)
}

// Text returns the text that a query selects.
func (h *Env) Text(t *testing.T, sql string, args ...any) string {
	t.Helper()
	return scan[string](t, h, sql, args)
}

func scan[T any](t *testing.T, h *Env, sql string, args []any) (v T) {
	t.Helper()
	if err := h.DB.Pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%.60s: %v", sql, err)
	}
	return v
}

// New starts a dashboard. In acme ada is owner, oscar operator and vera viewer; gus owns
// globex. Their emails end in @example.com. before may change the dashboard first.
func New(t *testing.T, before ...func(*Env)) *Env {
	t.Helper()
	h := &Env{DB: dbtest.New(t)}
	h.Acme, h.Globex = h.organization(t, "acme"), h.organization(t, "globex")
	for _, p := range []struct {
		name, org string
		role      operator.Role
	}{
		{"ada", h.Acme, operator.Owner},
		{"oscar", h.Acme, operator.Operator},
		{"vera", h.Acme, operator.Viewer},
		{"gus", h.Globex, operator.Owner},
	} {
		h.AddOperator(t, p.name+"@example.com", p.org, p.role)
	}
	server := httptest.NewUnstartedServer(nil)
	h.URL = "http://" + server.Listener.Addr().String()
	files := &recording.Folder{Dir: t.TempDir()}
	h.Dashboard = &dashboard.Dashboard{
		DB: h.DB, Key: []byte("of the forms of tests"), Root: "root", PublicURL: h.URL, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Lists: &dnc.Catalog{Pool: h.DB.Pool, Bucket: files, Dir: t.TempDir()},
	}
	h.setServices(t)
	for _, f := range before {
		f(h)
	}
	handler, err := h.Dashboard.Handler()
	if err != nil {
		t.Fatal(err)
	}
	if h.Outer != nil {
		handler = h.Outer(handler)
	}
	server.Config.Handler = handler
	server.Start()
	t.Cleanup(server.Close)
	return h
}

func (h *Env) organization(t *testing.T, name string) string {
	t.Helper()
	id, err := apikeys.EnsureOrganization(t.Context(), h.DB.Pool, name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// AddOperator adds an operator to an organization. A new account gets Password.
func (h *Env) AddOperator(t *testing.T, email, org string, role operator.Role) {
	t.Helper()
	cheap := operator.Cost{Passes: 1, Memory: 8}
	if _, _, err := operator.Create(t.Context(), h.DB.Pool, operator.NewMember{
		Email: email,
		OrgID: org, Role: role, Password: Password, Cost: cheap,
	}); err != nil {
		t.Fatal(err)
	}
}

// A Browser is an HTTP client with cookies.
type Browser struct {
	t      *testing.T
	env    *Env
	client *http.Client
	org    string
}

// NewBrowser returns a browser without a session.
func (h *Env) NewBrowser(t *testing.T) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Browser{t, h, &http.Client{Jar: jar, CheckRedirect: stay}, h.Acme}
}

// SignIn returns a signed-in browser of the operator with this name; gus uses globex,
// all others acme.
func (h *Env) SignIn(t *testing.T, name string) *Browser {
	t.Helper()
	b := h.NewBrowser(t)
	if name == "gus" {
		b.org = h.Globex
	}
	a := b.Post("/dashboard/sign-in", "email", name+"@example.com", "password", string(Password))
	if a.Status != http.StatusSeeOther {
		t.Fatalf("%s sign-in failed: %d %s", name, a.Status, a.Text())
	}
	return b
}

// An Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

var tags = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>|\s+`)

// Text returns the visible text of a page.
func (a Answer) Text() string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(strings.ReplaceAll(a.Body, "<wbr>", ""), " "))), " ")
}

// Location returns the target of a redirect.
func (a Answer) Location() string { return a.Header.Get("Location") }

// URL returns the path of a page of the browser's organization. A path that begins with
// a slash is returned as it is.
func (b *Browser) URL(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/dashboard/" + b.org + "/" + path
}

// Get requests a page.
func (b *Browser) Get(path string) Answer {
	b.t.Helper()
	return b.Do(http.MethodGet, path, nil)
}

// Post submits a form of name and value pairs.
func (b *Browser) Post(path string, pairs ...string) Answer {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.Do(http.MethodPost, path, strings.NewReader(form.Encode()),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
}

// Upload submits a form with a file; an empty name sends none.
func (b *Browser) Upload(path, name, text string, pairs ...string) Answer {
	b.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = w.WriteField(pairs[i], pairs[i+1])
	}
	if name != "" {
		f, _ := w.CreateFormFile("file", name)
		_, _ = f.Write([]byte(text))
	}
	_ = w.Close()
	return b.Do(http.MethodPost, path, &body, "Content-Type", w.FormDataContentType(), "Sec-Fetch-Site", "same-origin")
}

// Do sends a request with header name and value pairs.
func (b *Browser) Do(method, path string, body io.Reader, headers ...string) Answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.env.URL+b.URL(path), body)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return Answer{resp.StatusCode, resp.Header, string(text)}
}

// Follow submits a form, requires success and returns the next page.
func (b *Browser) Follow(path string, pairs ...string) Answer {
	b.t.Helper()
	a := b.Post(path, pairs...)
	if a.Status != http.StatusSeeOther {
		b.t.Fatalf("POST %s: %d %s", path, a.Status, a.Text())
	}
	return b.Get(a.Location())
}

// Cookie returns the session cookie.
func (b *Browser) Cookie() *http.Cookie {
	u, err := url.Parse(b.env.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(u) {
		return c
	}
	return nil
}
