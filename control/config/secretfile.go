package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// secretKeys are the settings that hold a secret, each of which may be kept in a
// file that KEY_FILE names.
func secretKeys() []string {
	return []string{
		"PARLEY_DATABASE_URL", "PARLEY_SEAL_KEY", "PARLEY_S3_SECRET", "PARLEY_DEEPGRAM_API_KEY", "PARLEY_OPENAI_API_KEY", "PARLEY_ELEVENLABS_API_KEY",
		"PARLEY_CARTESIA_API_KEY", "PARLEY_ASSEMBLYAI_API_KEY", "PARLEY_CLASSIFIER_KEY", "PARLEY_API_KEY",
		"PARLEY_TURN_SECRET",
	}
}

// withFiles adds KEY_FILE for every secret KEY.
func withFiles(all map[string]Setting) map[string]Setting {
	for _, key := range secretKeys() {
		set := all[key].Set
		all[key+"_FILE"] = Setting{"a file that holds " + key, func(c *Config, v string) error {
			text, err := os.ReadFile(v) //nolint:gosec // the operator names the file
			if err != nil {
				return err
			}
			secret := strings.TrimSpace(string(text))
			if secret == "" {
				return fmt.Errorf("%s is empty", v)
			}
			return set(c, secret)
		}}
	}
	return all
}

// notBoth refuses a secret that is given twice.
func notBoth(values map[string]string, where string) error {
	var errs []error
	for _, key := range secretKeys() {
		if values[key] != "" && values[key+"_FILE"] != "" {
			errs = append(errs, fmt.Errorf("%s: %s and %[2]s_FILE: only one of them", where, key))
		}
	}
	return errors.Join(errs...)
}
