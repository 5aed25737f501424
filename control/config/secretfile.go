package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/media"
)

// secretSettings returns the settings that hold a secret. For each setting KEY, KEY_FILE may name a file that
// holds the secret.
func secretSettings() map[string]Setting {
	secret := func(at func(*Config) *media.Secret) func(*Config, string) error {
		return func(c *Config, v string) error { *at(c) = media.Secret(v); return nil }
	}
	database := func(at func(*Config) *media.Secret) Setting {
		return Setting{"postgres://user:password@host:port/database", setDatabase(at)}
	}
	return map[string]Setting{
		"PARLEY_DATABASE_URL":        database(func(c *Config) *media.Secret { return &c.DatabaseURL }),
		"PARLEY_DATABASE_DIRECT_URL": database(func(c *Config) *media.Secret { return &c.DatabaseDirectURL }),
		"PARLEY_SEAL_KEY":            {"keys of 32 bytes in base64, comma-separated", setSealKey},
		"PARLEY_S3_SECRET":           {"that access key", secret(func(c *Config) *media.Secret { return &c.S3.Secret })},
		"PARLEY_DEEPGRAM_API_KEY":    endpointKey("deepgram"),
		"PARLEY_OPENAI_API_KEY":      endpointKey("openai"),
		"PARLEY_ELEVENLABS_API_KEY":  endpointKey("elevenlabs"),
		"PARLEY_CARTESIA_API_KEY":    endpointKey("cartesia"),
		"PARLEY_ASSEMBLYAI_API_KEY":  endpointKey("assemblyai"),
		"PARLEY_OIDC_CLIENT_SECRET":  {"the client's secret", secret(func(c *Config) *media.Secret { return &c.Identity.Secret })},
		"PARLEY_CLASSIFIER_KEY":      {"a key", secret(func(c *Config) *media.Secret { return &c.ClassifierKey })},
		"PARLEY_OTLP_HEADERS":        {"NAME=VALUE,NAME=VALUE", setTraceHeaders},
		"PARLEY_API_KEY":             {"an API key", secret(func(c *Config) *media.Secret { return &c.APIKey })},
		"PARLEY_TURN_SECRET":         {"the TURN servers' shared secret", secret(func(c *Config) *media.Secret { return &c.WebRTC.TURNSecret })},
	}
}

// withSecrets adds the settings that hold a secret to a table, and a KEY_FILE setting for each of them.
func withSecrets(all map[string]Setting) map[string]Setting {
	for key, setting := range secretSettings() {
		all[key] = setting
		all[key+"_FILE"] = Setting{"a file that holds " + key, func(c *Config, v string) error {
			secret, err := readSecret(v)
			if err != nil {
				return err
			}
			return setting.Set(c, secret)
		}}
	}
	return all
}

// checkExclusive rejects a secret that is set both directly and through a file.
func checkExclusive(values map[string]string, where string) error {
	var errs []error
	for _, file := range slices.Sorted(maps.Keys(values)) {
		if key, ok := strings.CutSuffix(file, "_FILE"); ok && values[key] != "" {
			errs = append(errs, fmt.Errorf("%s: %s and %s are both set; accepted: only one of them", where, key, file))
		}
	}
	return errors.Join(errs...)
}
