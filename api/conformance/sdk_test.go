package conformance_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-voice/parley/api/openapi"
	"github.com/parley-voice/parley/sip/siptest"
)

// TestSDKs runs the steps of testdata/sdk.json through each SDK against the service, with a proxy in between that
// causes faults.
func TestSDKs(t *testing.T) {
	t.Parallel()
	s := shared.get(t)
	text, err := os.ReadFile("testdata/sdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var steps []sdkStep
	if err = json.Unmarshal(text, &steps); err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func(t *testing.T) *exec.Cmd{"go": goRunner, "typescript": typescriptRunner, "python": pythonRunner} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runSDK(t, s, build(t), steps)
		})
	}
}

// A sdkStep is a call of a method of an SDK. In strings, $name is replaced by a saved value.
type sdkStep struct {
	Name  string `json:"name"`
	Op    string `json:"op"`
	ID    string `json:"id"`
	Key   string `json:"key"`
	Query any    `json:"query"`
	Body  any    `json:"body"`
	File  string `json:"file"`
	Pad   int    `json:"pad"`  // further bytes of the file
	List  bool   `json:"list"` // the method returns an iterator

	Webhook string `json:"webhook"` // which delivery to verify
	Fault   string `json:"fault"`   // of the first request

	Want     any            `json:"want"` // part of the result; the string $any stands for anything but null
	Error    map[string]any `json:"error"`
	Count    *int           `json:"count"`    // number of items
	Contains string         `json:"contains"` // part of a text
	Requests int            `json:"requests"`
	Seconds  float64        `json:"min_seconds"`
	Await    bool           `json:"await"` // repeat until the result is as wanted
	// Save has the paths of values in the result, by name.
	Save map[string]string `json:"save"`
}

// goRunner builds the runner of the Go SDK, which is a module of its own.
func goRunner(t *testing.T) *exec.Cmd {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "runner")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./internal/runner")
	build.Dir = filepath.Join(root, "api/sdk/go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return exec.CommandContext(t.Context(), bin)
}

// typescriptRunner builds a copy of the TypeScript SDK with the tools that its package names. It also generates the
// schema again and compares it.
func typescriptRunner(t *testing.T) *exec.Cmd {
	t.Helper()
	dir, from := t.TempDir(), filepath.Join(root, "api/sdk")
	for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json"} {
		text, err := os.ReadFile(filepath.Join(from, "typescript", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"src", "test"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(from, "typescript", name))); err != nil {
			t.Fatal(err)
		}
	}
	document, err := filepath.Abs(filepath.Join(from, "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	writeSamples(t, document, filepath.Join(dir, "src"))
	for _, args := range [][]string{
		{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"},
		{"node_modules/.bin/openapi-typescript", document, "-o", "schema.ts"},
		{"node_modules/.bin/tsc"},
		{"node", "--test", "test/sdk.test.mjs"},
	} {
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Dir = dir
		out, fault := c.CombinedOutput()
		if fault != nil && args[0] == "npm" && os.Getenv("PARLEYTEST_SOAK") == "" {
			t.Skipf("the registry of npm is not available; make soak requires it: %v\n%s", fault, out)
		}
		if fault != nil {
			t.Fatalf("%v: %v (.ci/deps test installs Node.js and npm)\n%s", args, fault, out)
		}
	}
	fresh, err := os.ReadFile(filepath.Join(dir, "schema.ts"))
	if err != nil {
		t.Fatal(err)
	}
	if had, err := os.ReadFile(filepath.Join(from, "typescript/src/schema.ts")); err != nil || !strings.HasSuffix(string(had), string(fresh)) {
		t.Errorf("src/schema.ts does not fit openapi.json (%v): npm run generate", err)
	}
	return exec.CommandContext(t.Context(), "node", filepath.Join(dir, "test/runner.mjs"))
}

// writeSamples writes the samples of the API explorer in TypeScript, which the compiler checks.
func writeSamples(t *testing.T, document, dir string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	m, err := openapi.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"samples.d.ts": "declare const process: { env: Record<string, string | undefined> };\n" +
		"declare module \"node:fs\" { export function openAsBlob(path: string): Promise<Blob>; }\n"}
	for _, op := range m.Operations {
		for _, form := range []bool{false, op.Form} {
			if form {
				op = op.FromFile()
			}
			for _, s := range m.Samples(op, "https://parley.example") {
				if s.Language == "TypeScript" {
					files["sample-"+op.OperationID+".ts"] = strings.Replace(s.Text, "@parley-voice/sdk", "./index.js", 1)
				}
			}
		}
	}
	for name, text := range files {
		if err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func pythonRunner(t *testing.T) *exec.Cmd {
	t.Helper()
	dir := filepath.Join(root, "api/sdk/python")
	for _, args := range [][]string{{"-m", "unittest", "discover", "-s", "tests"}, {"tests/runner.py"}} {
		c := exec.CommandContext(t.Context(), "python3", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=.")
		if args[0] != "-m" {
			return c
		}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v (.ci/deps test installs Python)\n%s", args, err, out)
		}
	}
	return nil
}

func runSDK(t *testing.T, s *service, runner *exec.Cmd, steps []sdkStep) {
	t.Helper()
	o := s.organization(t).useUSRules(t)
	proxy := newFaultProxy(t, o.url)
	runner.Args = append(runner.Args, proxy.URL, o.key)
	runner.Stderr = os.Stderr
	in, err := runner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = runner.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(in.Close(), runner.Wait()); err != nil {
			t.Error(err)
		}
	}()
	answers := bufio.NewReaderSize(out, 1<<20)
	values := map[string]any{}
	for _, name := range []string{"number", "other", "added"} {
		values[name] = s.phone(siptest.Script{Status: http.StatusOK})
	}
	for _, step := range steps {
		check := func() string {
			proxy.begin(step.Fault)
			began := time.Now()
			got, err := ask(in, answers, request(t, step, values))
			if err != nil {
				t.Fatalf("%s: %v", step.Name, err)
			}
			return step.problem(got, values, proxy.count(), time.Since(began).Seconds())
		}
		problem := check()
		if step.Await {
			waitUntil(t, step.Name, func() bool {
				problem = check()
				return problem == ""
			})
		}
		if problem != "" {
			t.Errorf("%s: %s", step.Name, problem)
		}
	}
}

// ask sends a step to the runner and returns its result.
func ask(in io.Writer, answers *bufio.Reader, step map[string]any) (sdkAnswer, error) {
	var got sdkAnswer
	text, err := json.Marshal(step)
	if err == nil {
		_, err = fmt.Fprintf(in, "%s\n", text)
	}
	if err != nil {
		return got, err
	}
	line, err := answers.ReadBytes('\n')
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal(line, &got)
}

type sdkAnswer struct {
	Result any            `json:"result"`
	Error  map[string]any `json:"error"`
}

// request returns what the runner gets.
func request(t *testing.T, s sdkStep, values map[string]any) map[string]any {
	t.Helper()
	r := map[string]any{"op": s.Op, "list": s.List}
	for name, v := range map[string]any{"id": s.ID, "key": s.Key, "query": s.Query, "body": s.Body} {
		if v != nil && v != "" {
			r[name] = fill(v, values)
		}
	}
	if s.File != "" {
		r["file"] = s.File + strings.Repeat("x", s.Pad)
	}
	if s.Webhook == "" {
		return r
	}
	now := time.Now()
	text := fmt.Sprintf(`{"type":"call_ended","event_id":"evt_1","call_id":%q,"metadata":{},"call":{"call_id":%[1]q}}`, values["call"])
	signer, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign("evt_1", now, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r["secret"], r["text"], r["now"] = hookSecret, text, now.Unix()
	r["headers"] = map[string]string{"webhook-id": "evt_1", "webhook-timestamp": fmt.Sprint(now.Unix()), "webhook-signature": "v1,AAAA " + signature}
	switch s.Webhook {
	case "forged":
		r["text"] = text + " "
	case "old":
		r["now"] = now.Add(6 * time.Minute).Unix()
	}
	return r
}

// fill replaces the names of saved values.
func fill(v any, values map[string]any) any {
	switch v := v.(type) {
	case string:
		if saved, ok := values[strings.TrimPrefix(v, "$")]; ok && strings.HasPrefix(v, "$") {
			return saved
		}
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, fill(e, values))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = fill(e, values)
		}
		return out
	}
	return v
}

// problem returns how the outcome of a step differs from what is wanted; empty if it does not. It saves values.
func (s sdkStep) problem(got sdkAnswer, values map[string]any, requests int, seconds float64) string {
	switch {
	case s.Error != nil:
		if !includes(got.Error, s.Error) {
			return fmt.Sprintf("%v, want error %v", got, s.Error)
		}
	case got.Error != nil || !includes(got.Result, fill(s.Want, values)):
		return fmt.Sprintf("%v, want %v", got, fill(s.Want, values))
	}
	if s.Requests > 0 && requests != s.Requests {
		return fmt.Sprintf("%d requests, want %d", requests, s.Requests)
	}
	if seconds < s.Seconds {
		return fmt.Sprintf("took %.2f s, want at least %v s", seconds, s.Seconds)
	}
	if list, _ := got.Result.([]any); s.Count != nil && len(list) != *s.Count {
		return fmt.Sprintf("%d items, want %d", len(list), *s.Count)
	}
	if text, _ := got.Result.(string); !strings.Contains(text, s.Contains) {
		return fmt.Sprintf("%q does not contain %q", text, s.Contains)
	}
	for name, path := range s.Save {
		v := got.Result
		for part := range strings.SplitSeq(path, ".") {
			m, _ := v.(map[string]any)
			v = m[part]
		}
		values[name] = v
	}
	return ""
}

// includes reports whether got has everything in want: the members of objects, and a matching item for each item of a
// list.
func includes(got, want any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		m, ok := got.(map[string]any)
		for k, v := range want {
			ok = ok && includes(m[k], v)
		}
		return ok
	case []any:
		list, ok := got.([]any)
		for _, v := range want {
			found := false
			for _, e := range list {
				found = found || includes(e, v)
			}
			ok = ok && found
		}
		return ok
	case string:
		return got == want || want == "$any" && got != nil
	}
	return got == want
}

// A faultProxy forwards requests to the service. It answers the first request of a step itself, or loses the answer, if
// the step has a fault.
type faultProxy struct {
	*httptest.Server

	to *httputil.ReverseProxy

	mu       sync.Mutex
	fault    string
	requests int
}

func newFaultProxy(t *testing.T, to string) *faultProxy {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &faultProxy{to: httputil.NewSingleHostReverseProxy(target)}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *faultProxy) begin(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.requests = fault, 0
}

func (p *faultProxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// ServeHTTP implements http.Handler.
func (p *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	fault := p.fault
	p.fault = ""
	p.requests++
	p.mu.Unlock()
	refuse := func(status int, kind, code string, retryAfter string) {
		if w.Header().Set("Content-Type", "application/json"); retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"type":%q,"code":%q,"status":%d,"message":"by the proxy"}}`, kind, code, status)
	}
	switch fault {
	case "":
		p.to.ServeHTTP(w, r)
	case "429":
		refuse(429, "rate_limit_error", "api_key_rate_limit_exceeded", "1")
	case "429-late":
		refuse(429, "rate_limit_error", "api_key_rate_limit_exceeded", "600")
	case "409":
		refuse(409, "conflict_error", "idempotency_key_in_flight", "")
	case "503":
		refuse(503, "service_unavailable_error", "voice_backend_unavailable", "")
	case "502":
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>Bad Gateway</html>") // the client may have left
	case "reset":
		p.to.ServeHTTP(httptest.NewRecorder(), r) // the service handles the request, and the client learns nothing
		conn, _, err := http.NewResponseController(w).Hijack()
		if tcp, ok := conn.(*net.TCPConn); err == nil && ok {
			_ = errors.Join(tcp.SetLinger(0), tcp.Close()) // the connection is lost as intended
		}
	}
}
