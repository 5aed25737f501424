package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/parley-voice/parley/api/openapi"
	"github.com/parley-voice/parley/api/schema"
)

// TestSamples runs the samples of the explorer against a server that notes their requests. Each must send the example of
// its operation. TestSDKs checks those in TypeScript.
func TestSamples(t *testing.T) {
	var got *http.Request
	var body []byte
	var mu sync.Mutex // of got and body
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerOf(r.URL.Path))
	}))
	defer s.Close()
	text, err := openapi.Extended(schema.NewSet(), s.URL, bodies())
	if err != nil {
		t.Fatal(err)
	}
	m, err := openapi.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	var all []openapi.Operation
	for _, op := range m.Operations {
		if all = append(all, op); op.Form {
			all = append(all, op.FromFile())
		}
	}
	dir := t.TempDir()
	if err = os.WriteFile(filepath.Join(dir, "contacts.csv"), []byte("phone\n2125550123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runners := map[string]func(i int) *exec.Cmd{
		"curl": func(i int) *exec.Cmd {
			return exec.CommandContext(t.Context(), "sh", "-c", sampleIn(m, all[i], s.URL, "curl"))
		},
		"Python": func(i int) *exec.Cmd {
			return exec.CommandContext(t.Context(), "python3", "-c", sampleIn(m, all[i], s.URL, "Python"))
		},
		"Go": goSamples(t, m, all, s.URL),
	}
	python, err := filepath.Abs("sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	for language, command := range runners {
		t.Run(language, func(t *testing.T) {
			if _, missing := exec.LookPath("curl"); missing != nil && language == "curl" {
				t.Skip("curl is not installed")
			}
			for i, op := range all {
				mu.Lock()
				got = nil
				mu.Unlock()
				c := command(i)
				c.Dir = dir
				c.Env = append(os.Environ(), "PARLEY_API_KEY=parley_1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+python)
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s\n%s", op.OperationID, err, out, sampleIn(m, op, s.URL, language))
					continue
				}
				mu.Lock()
				checkSample(t, op, got, body)
				mu.Unlock()
			}
		})
	}
}

// answerOf returns a body that the SDKs can decode as the result.
func answerOf(path string) string {
	if strings.HasSuffix(path, "/turns") {
		return "[]"
	}
	return `{"next_cursor":null,"calls":[],"campaigns":[],"keys":[],"organizations":[],"webhooks":[]}`
}

func sampleIn(m *openapi.Model, op openapi.Operation, baseURL, language string) string {
	for _, s := range m.Samples(op, baseURL) {
		if s.Language == language {
			return s.Text
		}
	}
	return ""
}

// goSamples compiles all samples in Go to one program.
func goSamples(t *testing.T, m *openapi.Model, all []openapi.Operation, baseURL string) func(i int) *exec.Cmd {
	t.Helper()
	sdk, err := filepath.Abs("sdk/go")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString("package main\n\nimport (\n\"context\"\n\"fmt\"\n\"os\"\n\nparley \"github.com/parley-voice/parley/api/sdk/go\"\n)\n")
	var list strings.Builder
	for i, op := range all {
		fmt.Fprintf(&b, "\nfunc f%d(ctx context.Context) error {\n%s\nreturn nil\n}\n", i, sampleIn(m, op, baseURL, "Go"))
		fmt.Fprintf(&list, "%q: f%d,\n", fmt.Sprint(i), i)
	}
	fmt.Fprintf(&b, "\nfunc main() {\nif err := map[string]func(context.Context) error{\n%s}[os.Args[1]](context.Background()); err != nil {\nfmt.Println(err)\nos.Exit(1)\n}\n}\n", &list)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module samples.example\n\ngo 1.23\n\nrequire github.com/parley-voice/parley/api/sdk/go v0.0.0\n\nreplace github.com/parley-voice/parley/api/sdk/go => " + sdk + "\n",
		"main.go": b.String(),
	} {
		if err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "go", "build", "-o", "samples", ".")
	c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, b.Bytes())
	}
	return func(i int) *exec.Cmd {
		return exec.CommandContext(t.Context(), filepath.Join(dir, "samples"), fmt.Sprint(i))
	}
}

// checkSample checks that a request is that of an operation, with its example.
func checkSample(t *testing.T, op openapi.Operation, got *http.Request, body []byte) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: no request", op.OperationID)
		return
	}
	path := op.Path
	for _, p := range op.Parameters {
		if p.In == "path" {
			path = strings.Replace(path, "{id}", fmt.Sprint(p.Example), 1)
		}
		if p.In == "query" && p.Required && got.URL.Query().Get(p.Name) != fmt.Sprint(p.Example) {
			t.Errorf("%s: query %s", op.OperationID, got.URL.RawQuery)
		}
	}
	keyed := got.Header.Get("Idempotency-Key") != ""
	if got.Method != op.Method || got.URL.Path != path || keyed != op.Keyed || got.Header.Get("Authorization") != "Bearer parley_1" {
		t.Errorf("%s sends %s %s %v", op.OperationID, got.Method, got.URL, got.Header)
	}
	var want, sent any
	if op.Body != "" {
		example, _ := json.Marshal(op.RequestBody.Content["application/json"].Example) // decoded before
		_ = json.Unmarshal(example, &want)
	}
	if op.File {
		if !bytes.Contains(body, []byte("name=\"rows\"")) || !bytes.Contains(body, []byte("2125550123")) || bytes.Contains(body, []byte("planned_calls")) {
			t.Errorf("%s sends %s", op.OperationID, body)
		}
		return
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Errorf("%s sends %s: %v", op.OperationID, body, err)
		}
	}
	if !reflect.DeepEqual(sent, want) {
		t.Errorf("%s sends %s, want %v", op.OperationID, body, want)
	}
}
