package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/db/dbtest"
)

// TestSecretFiles checks that every secret may be read from a file, and that no error repeats a secret.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := file("openai", " canary\n")
	c, err := Load("", []string{"PARLEY_OPENAI_API_KEY_FILE=" + key, "PARLEY_SEAL_KEY_FILE=" + file("seal", dbtest.SealKey)})
	if err != nil || c.Endpoints.Named["openai"].Key != "canary" || c.SealKey != dbtest.SealKey {
		t.Errorf("%v", err)
	}
	for want, environ := range map[string][]string{
		"only one of them": {"PARLEY_OPENAI_API_KEY_FILE=" + key, "PARLEY_OPENAI_API_KEY=canary"},
		"is empty":         {"PARLEY_CLASSIFIER_KEY_FILE=" + file("empty", "\n")},
		"no such file":     {"PARLEY_CARTESIA_API_KEY_FILE=" + dir + "/nothing"},
		"base64":           {"PARLEY_SEAL_KEY=canary"},
		"is not the base64 of 32 bytes; accepted: a file that holds PARLEY_SEAL_KEY": {"PARLEY_SEAL_KEY_FILE=" + key},
		"connection string": {"PARLEY_DATABASE_URL_FILE=" + key},
	} {
		if _, err := Load("", environ); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for key, s := range Settings() {
		var c Config
		if s.Set(&c, "canary") == nil && secretSettings()[key].Set == nil && strings.Contains(key, "KEY") && !strings.HasPrefix(s.Accepts, "a PEM file") {
			t.Errorf("%s cannot be kept in a file", key)
		}
	}
}
