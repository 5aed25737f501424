package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
)

// TestDeploySettings checks that every setting in deploy exists, and that the settings of the service are valid.
func TestDeploySettings(t *testing.T) {
	key := regexp.MustCompile(`PARLEY_[A-Z0-9_]+`)
	found := 0
	err := filepath.WalkDir("deploy", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, k := range key.FindAllString(string(text), -1) {
			found++
			_, ok := config.Settings()[k]
			if _, file := config.Settings()[strings.TrimSuffix(k, "_FILE")]; !ok && !file {
				t.Errorf("%s: unknown setting %s", path, k)
			}
		}
		return err
	})
	if err != nil || found < 20 {
		t.Errorf("%d settings, %v", found, err)
	}
	text, err := os.ReadFile("deploy/systemd/parley.conf")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(writeFile(t, "unedited.conf", strings.ReplaceAll(string(text), "PARLEY_SEAL_KEY_FILE", "#")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = c.MediaAddrs(); err == nil || !strings.Contains(err.Error(), "PARLEY_MEDIA_IP is required") {
		t.Errorf("unedited settings: %v", err)
	}
	if c.DataDir != "/var/lib/parley" { // also for commands, which do not have the environment of the unit
		t.Errorf("data directory %s", c.DataDir)
	}
	settings := strings.ReplaceAll(string(text), "\n#PARLEY", "\nPARLEY")                                     // the commented settings, too
	settings = strings.ReplaceAll(settings, "/etc/parley/seal.key", writeFile(t, "seal.key", dbtest.SealKey)) // the installer writes it
	settings = strings.ReplaceAll(settings, "_API_KEY=", "_API_KEY=test")
	c, err = config.Load(writeFile(t, "parley.conf", settings), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.HTTPTLS.Load(c.PublicURL); err != nil {
		t.Error(err)
	}
}
