package webhook

import (
	"errors"
	"net/url"
	"time"
)

// timeout is how long an endpoint may take to answer.
const timeout = 15 * time.Second

// CheckURL returns what is wrong with an endpoint's address. Whether its host
// leads outward is checked at each connection, after the name is resolved.
func CheckURL(text string, insecure bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return errors.New("a webhook url is like https://host/path")
	case u.User != nil:
		return errors.New("a webhook url holds no user or password")
	case u.Scheme != "https" && (u.Scheme != "http" || !insecure):
		return errors.New("a webhook url begins with https:// (http needs PARLEY_ALLOW_INSECURE_WEBHOOKS)")
	}
	return nil
}
