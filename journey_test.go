package main

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/siptest"
)

// operatorClient is an operator with a browser on the dashboard pages of an organization.
type operatorClient struct {
	t      *testing.T
	client *http.Client
	at     string // path of the organization's pages
}

// operatorClient creates an operator with a role in the demo's organization, and signs the operator in.
func (srv *server) operatorClient(t *testing.T) *operatorClient {
	t.Helper()
	org, err := apikeys.FindOrganization(t.Context(), srv.db.Pool, "demo")
	if err != nil {
		t.Fatal(err)
	}
	who := operator.NewMember{Email: "ada@example.com", OrgID: org, Role: operator.Operator, Password: "correct horse battery", Cost: operator.Cost{Passes: 1, Memory: 8}}
	if _, _, err = operator.Create(t.Context(), srv.db.Pool, who); err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &operatorClient{t, &http.Client{Jar: jar}, srv.publicURL + "/dashboard/" + org + "/"}
	c.send(srv.publicURL+"/dashboard/sign-in", "email", who.Email, "password", string(who.Password))
	return c
}

// do requests a page as a browser does, follows redirects, and returns the final URL and the text.
func (c *operatorClient) do(method, path, kind string, body io.Reader) (*url.URL, string) {
	c.t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = c.at + path
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s %s: %d, %v: %s", method, path, answer.StatusCode, err, plain(string(text)))
	}
	return answer.Request.URL, string(text)
}

func (c *operatorClient) get(path string) string {
	c.t.Helper()
	_, page := c.do(http.MethodGet, path, "", nil)
	return page
}

// send submits a form. pairs are names and values in turn.
func (c *operatorClient) send(path string, pairs ...string) (*url.URL, string) {
	c.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return c.do(http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func (c *operatorClient) upload(path, field, text string, pairs ...string) (*url.URL, string) {
	c.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for i := 0; i < len(pairs); i += 2 {
		_ = w.WriteField(pairs[i], pairs[i+1]) // into memory
	}
	f, _ := w.CreateFormFile(field, "list.csv") // into memory
	_, _ = io.WriteString(f, text)
	_ = w.Close()
	return c.do(http.MethodPost, path, w.FormDataContentType(), &body)
}

// value returns the value of a hidden form field.
func (c *operatorClient) value(page, name string) string {
	c.t.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(page)
	if m == nil {
		c.t.Fatalf("the page has no %s: %s", name, plain(page))
	}
	return html.UnescapeString(m[1])
}

var tags = regexp.MustCompile(`(?s)<[^>]*>|\s+`)

func plain(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(page, " "))), " ")
}

// TestDashboardCampaign runs a campaign by the dashboard only. The carrier must get calls to its numbers, the page must
// show the results, and a pause must take effect.
func TestDashboardCampaign(t *testing.T) {
	t.Parallel()
	var a inviteCounter
	c := carrier(t, &siptest.Carrier{Answer: func(i siptest.Invite) siptest.Script {
		s := a.refuse(i)
		if strings.HasSuffix(i.To, "1") {
			return siptest.Script{Status: 200, Talk: listenFor(time.Second)}
		}
		return s // contacts that were busy wait for the next attempt
	}})
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) { c.DatabaseURL = media.Secret(dbtest.URL(t)) })
	srv.allowAnyHour(t)
	ada := srv.operatorClient(t)

	at, page := ada.upload("campaigns/new", "rows", "Mobile,Who\n+77012345671,Ada\n+77012345672,Bob\nnonsense,Eve\n", "once", ada.value(ada.get("campaigns/new"), "once"))
	if !strings.Contains(plain(page), "2 Will be called") || !strings.Contains(plain(page), "1 Invalid") {
		t.Fatalf("%s says %s", at, plain(page))
	}
	draft := "campaigns/draft?" + url.Values{"upload": at.Query()["upload"], "c0": {"phone"}, "c1": {"name"}}.Encode()
	at, page = ada.send(draft, "once", ada.value(ada.get(draft), "once"), "name", "Spring", "agent", "demo", "classification", "servicing", "pace", "200",
		"attempts", "2", "interval", "15", "duplicates", "keep_first")
	if strings.Contains(page, `class="fails"`) || !strings.Contains(plain(page), "I confirm that each of these people gave prior express consent") || len(a.numbers()) > 0 {
		t.Fatalf("%s says %s", at, plain(page))
	}
	_, id, _ := strings.Cut(at.Path, "/campaigns/")
	list := ada.value(page, "import")
	if _, page = ada.send("campaigns/"+id+"/launch", "import", list, "attest", "on"); !strings.Contains(plain(page), "Campaign launched.") {
		t.Fatalf("after the launch the page says %s", plain(page))
	}
	eventually(t, "the page shows both results", func() bool {
		page = plain(ada.get("campaigns/" + id))
		return strings.Contains(page, "Answered by a person 1") && strings.Contains(page, "Busy 1") && strings.Contains(page, "1 Completed")
	})
	if !strings.Contains(page, "Waiting for the next attempt") || !strings.Contains(page, "2 calls in the last minute; requested: 200 per minute") {
		t.Errorf("the page says %s", page)
	}
	if calls := plain(ada.get("calls?campaign_id=" + id + "&status=ended")); !strings.Contains(calls, "77012345671") || strings.Contains(calls, "77012345672") {
		t.Errorf("the calls are %s", calls)
	}
	if report := ada.get("imports/" + list + "/report?format=csv"); !strings.Contains(report, "done") || !strings.Contains(report, "phone_invalid") {
		t.Errorf("the report is %s", report)
	}

	if _, page = ada.send("campaigns/" + id + "/pause"); !strings.Contains(plain(page), "Paused: no new calls.") {
		t.Errorf("after the pause the page says %s", plain(page))
	}
	var shown struct{ Status string }
	if err := api.Do(t.Context(), http.MethodGet, "/v1/campaigns/"+id, nil, &shown); err != nil || shown.Status != "paused" {
		t.Errorf("the API reports status %q, %v", shown.Status, err)
	}
	if got := a.numbers(); got["77012345671"] != 1 || got["77012345672"] != 1 || len(got) != 2 {
		t.Errorf("the carrier received %v", got)
	}
}
