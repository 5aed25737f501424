package webhook

import (
	"errors"
	"net/url"
	"time"
)

// timeout is the maximum duration of one attempt.
const timeout = 15 * time.Second

// CheckURL returns an error if the URL is invalid. It does not check for private addresses: each connection does,
// after the name is resolved.
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
