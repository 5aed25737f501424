package webhook

import (
	"errors"
	"net/url"
	"time"
)

const timeout = 15 * time.Second

// CheckURL returns an error if the URL is invalid. It accepts private addresses, because each connection checks the
// address after name resolution.
func CheckURL(text string, insecure bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return errors.New("a webhook URL must look like https://host/path")
	case u.User != nil:
		return errors.New("a webhook URL must not contain a user or password")
	case u.Scheme != "https" && (u.Scheme != "http" || !insecure):
		return errors.New("a webhook URL must start with https:// (http needs PARLEY_ALLOW_INSECURE_WEBHOOKS)")
	}
	return nil
}
