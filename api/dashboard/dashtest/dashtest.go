// Package dashtest serves the dashboard to tests: over a real database, to browsers
// that are signed in.
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
	"github.com/parley-voice/parley/campaigns/lists"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/media"
)

// Password is everybody's.
const Password media.Secret = "correct horse battery"

// A House is the dashboard of two organizations.
type House struct {
	DB   *db.DB
	URL  string
	Acme string // ids of organizations
	// Globex is nobody's of acme.
	Globex string

	Dashboard *dashboard.Dashboard
}

// New builds one. In acme ada is owner, oscar operator, and vera viewer; globex has
// gus. Their addresses end in @example.com. Before, where given, changes the
// dashboard before it opens.
func New(t *testing.T, before ...func(*House)) *House {
	t.Helper()
	h := &House{DB: dbtest.New(t)}
	h.Acme, h.Globex = h.organization(t, "acme"), h.organization(t, "globex")
	for _, p := range []struct {
		name, org string
		role      operator.Role
	}{{"ada", h.Acme, operator.Owner}, {"oscar", h.Acme, operator.Operator}, {"vera", h.Acme, operator.Viewer}, {"gus", h.Globex, operator.Owner}} {
		h.Hire(t, p.name+"@example.com", p.org, p.role)
	}
	server := httptest.NewUnstartedServer(nil)
	h.URL = "http://" + server.Listener.Addr().String()
	files := &recording.Folder{Dir: t.TempDir()}
	h.Dashboard = &dashboard.Dashboard{
		DB: h.DB, Key: []byte("of the forms of tests"), Root: "root", PublicURL: h.URL, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Lists: &lists.Shelf{Pool: h.DB.Pool, Bucket: files, Dir: t.TempDir()},
	}
	h.equip(t)
	for _, f := range before {
		f(h)
	}
	handler, err := h.Dashboard.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = handler
	server.Start()
	t.Cleanup(server.Close)
	return h
}

func (h *House) organization(t *testing.T, name string) string {
	t.Helper()
	id, err := access.EnsureOrganization(t.Context(), h.DB.Pool, name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Hire gives somebody a role; a new account has Password.
func (h *House) Hire(t *testing.T, email, org string, role operator.Role) {
	t.Helper()
	cheap := operator.Cost{Passes: 1, Memory: 8}
	if _, _, err := operator.Create(t.Context(), h.DB.Pool, operator.Newcomer{Email: email, OrgID: org, Role: role, Password: Password, Cost: cheap}); err != nil {
		t.Fatal(err)
	}
}

// A Browser is somebody's.
type Browser struct {
	t      *testing.T
	house  *House
	client *http.Client
	org    string
}

// Stranger is a browser in which nobody is signed in.
func (h *House) Stranger(t *testing.T) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Browser{t, h, &http.Client{Jar: jar, CheckRedirect: stay}, h.Acme}
}

// SignIn is a browser of somebody's, by the name before the @; of acme, or of
// globex where it is gus.
func (h *House) SignIn(t *testing.T, name string) *Browser {
	t.Helper()
	b := h.Stranger(t)
	if name == "gus" {
		b.org = h.Globex
	}
	a := b.Post("/dashboard/sign-in", "email", name+"@example.com", "password", string(Password))
	if a.Status != http.StatusSeeOther {
		t.Fatalf("%s cannot sign in: %d %s", name, a.Status, a.Text())
	}
	return b
}

// An Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

var tags = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>|\s+`)

// Text is what of a page can be read.
func (a Answer) Text() string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(a.Body, " "))), " ")
}

// To is where an answer leads.
func (a Answer) To() string { return a.Header.Get("Location") }

// Page is the address of a page of the browser's organization. A path that begins
// with a slash is one already.
func (b *Browser) Page(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/dashboard/" + b.org + "/" + path
}

// Get asks for a page.
func (b *Browser) Get(path string) Answer {
	b.t.Helper()
	return b.Do(http.MethodGet, path, nil)
}

// Post sends a form, of pairs of names and values, as the page itself does.
func (b *Browser) Post(path string, pairs ...string) Answer {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return b.Do(http.MethodPost, path, strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
}

// Upload sends a file of a name, none where that is empty, with the form of a page.
func (b *Browser) Upload(path, name, text string, pairs ...string) Answer {
	b.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i+1 < len(pairs); i += 2 {
		_ = w.WriteField(pairs[i], pairs[i+1]) // into memory
	}
	if name != "" {
		f, _ := w.CreateFormFile("file", name) // likewise
		_, _ = f.Write([]byte(text))
	}
	_ = w.Close()
	return b.Do(http.MethodPost, path, &body, "Content-Type", w.FormDataContentType(), "Sec-Fetch-Site", "same-origin")
}

// Do sends a request with headers in pairs.
func (b *Browser) Do(method, path string, body io.Reader, headers ...string) Answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.house.URL+b.Page(path), body)
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

// Follow sends a form, wants it taken, and returns the page that it leads to.
func (b *Browser) Follow(path string, pairs ...string) Answer {
	b.t.Helper()
	a := b.Post(path, pairs...)
	if a.Status != http.StatusSeeOther {
		b.t.Fatalf("POST %s: %d %s", path, a.Status, a.Text())
	}
	return b.Get(a.To())
}

// Cookie is what the browser is known by.
func (b *Browser) Cookie() *http.Cookie {
	u, err := url.Parse(b.house.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(u) {
		return c
	}
	return nil
}
