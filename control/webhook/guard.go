package webhook

import (
	"errors"
	"net/url"
	"time"
)

// timeout bounds one attempt.
const timeout = 15 * time.Second

// CheckURL returns the error of an invalid URL, or nil. Private addresses are rejected later, at each connection, after the
// name is resolved.
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
