package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/parley-voice/parley/media"
)

// secretSettings returns the settings that hold a secret. Each may be kept in a file that
// KEY_FILE names.
func secretSettings() map[string]Setting {
	secret := func(at func(*Config) *media.Secret) func(*Config, string) error {
		return func(c *Config, v string) error { *at(c) = media.Secret(v); return nil }
	}
	return map[string]Setting{
		"PARLEY_DATABASE_URL":       {"postgres://user:password@host:port/database", setDatabase},
		"PARLEY_SEAL_KEY":           {"the base64 of 32 bytes, several with commas between", setSealKey},
		"PARLEY_S3_SECRET":          {"that access key", secret(func(c *Config) *media.Secret { return &c.S3.Secret })},
		"PARLEY_DEEPGRAM_API_KEY":   {"a key", secret(func(c *Config) *media.Secret { return &c.Accounts.Deepgram.Key })},
		"PARLEY_OPENAI_API_KEY":     {"a key", secret(func(c *Config) *media.Secret { return &c.Accounts.OpenAI.Key })},
		"PARLEY_ELEVENLABS_API_KEY": {"a key", secret(func(c *Config) *media.Secret { return &c.Accounts.ElevenLabs.Key })},
		"PARLEY_CARTESIA_API_KEY":   {"a key", secret(func(c *Config) *media.Secret { return &c.Accounts.Cartesia.Key })},
		"PARLEY_ASSEMBLYAI_API_KEY": {"a key", secret(func(c *Config) *media.Secret { return &c.Accounts.AssemblyAI.Key })},
		"PARLEY_CLASSIFIER_KEY":     {"a key", secret(func(c *Config) *media.Secret { return &c.ClassifierKey })},
		"PARLEY_API_KEY":            {"an API key", secret(func(c *Config) *media.Secret { return &c.APIKey })},
		"PARLEY_TURN_SECRET":        {"the TURN servers' shared secret", secret(func(c *Config) *media.Secret { return &c.WebRTC.TURNSecret })},
	}
}

// withSecrets adds the settings that hold a secret, and KEY_FILE for each.
func withSecrets(all map[string]Setting) map[string]Setting {
	for key, setting := range secretSettings() {
		all[key] = setting
		all[key+"_FILE"] = Setting{"a file that holds " + key, func(c *Config, v string) error {
			text, err := os.ReadFile(v) //nolint:gosec // the operator names the file
			if err != nil {
				return err
			}
			secret := strings.TrimSpace(string(text))
			if secret == "" {
				return fmt.Errorf("%s is empty", v)
			}
			return setting.Set(c, secret)
		}}
	}
	return all
}

// checkExclusive rejects a secret that is set both directly and by a file.
func checkExclusive(values map[string]string, where string) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(secretSettings())) {
		if values[key] != "" && values[key+"_FILE"] != "" {
			errs = append(errs, fmt.Errorf("%s: %s and %[2]s_FILE: only one of them", where, key))
		}
	}
	return errors.Join(errs...)
}
