package api

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/openapi"
	"github.com/parley-voice/parley/api/schema"
)

// Versions of tools that run beside the project.
const (
	oapiCodegen       = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
	oapiRuntime       = "github.com/oapi-codegen/runtime@v1.9.0"
	redocly           = "@redocly/cli@2.77.0"
	openapiTypescript = "openapi-typescript@7.10.1"
	typescript        = "typescript@5.9.3"
)

// writeDocuments writes the four documents of a server into a folder.
func writeDocuments(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	d, err := openapi.New(schema.NewSet(), "https://parley.example")
	if err != nil {
		t.Fatal(err)
	}
	extended, err := openapi.Extended(schema.NewSet(), "https://parley.example", bodies())
	if err != nil {
		t.Fatal(err)
	}
	extended30, err := openapi.To30(extended)
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("openapi/redocly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"openapi.json": d.JSON, "openapi-3.0.json": d.JSON30, "openapi-extended.json": extended, "openapi-extended-3.0.json": extended30,
		"lint.yaml": config,
	} {
		if err = os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSoakGenerators generates clients from the documents with the usual tools, compiles them, and lints the documents.
func TestSoakGenerators(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	dir := writeDocuments(t)
	run := func(t *testing.T, name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	t.Run("oapi-codegen", func(t *testing.T) {
		run(t, "go", "mod", "init", "generated.example")
		run(t, "go", "get", "-tool", oapiCodegen)
		run(t, "go", "get", oapiRuntime)
		for _, name := range []string{"openapi-3.0", "openapi-extended-3.0"} {
			to := strings.NewReplacer("-", "", ".", "").Replace(name)
			if err := os.Mkdir(filepath.Join(dir, to), 0o700); err != nil {
				t.Fatal(err)
			}
			run(t, "go", "tool", "oapi-codegen", "-generate", "types,client,skip-prune", "-package", "parley", "-o", to+"/parley.go", name+".json")
			run(t, "go", "vet", "./"+to)
		}
	})
	t.Run("npm", func(t *testing.T) {
		run(t, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", redocly, openapiTypescript, typescript)
		for _, name := range []string{"openapi", "openapi-3.0", "openapi-extended", "openapi-extended-3.0"} {
			run(t, "node_modules/.bin/openapi-typescript", name+".json", "-o", name+".ts")
			run(t, "node_modules/.bin/tsc", "--noEmit", "--strict", "--lib", "es2022,dom", name+".ts")
		}
		if out := run(t, "node_modules/.bin/redocly", "lint", "--config", "lint.yaml"); strings.Contains(out, "You have") || strings.Count(out, "validated in") != 4 {
			t.Errorf("redocly lint:\n%s", out)
		}
	})
}
