package parley

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// WebhookTolerance is the largest accepted difference between the time of a delivery and the present.
const WebhookTolerance = 5 * time.Minute

// ErrWebhook is returned for a delivery that was not signed with the secret, or that is too old. Respond with 400.
var ErrWebhook = errors.New("parley: webhook")

// VerifyWebhook checks the signature and the time of a delivery and returns its event. Body must be exactly what was
// received, and now is the present time. A delivery may arrive more than once, each time with the same EventID.
func VerifyWebhook(secret string, header http.Header, body []byte, now time.Time) (*WebhookEvent, error) {
	text, ok := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) == 0 {
		return nil, errors.New("parley: a webhook secret must be whsec_ followed by base64")
	}
	stamp := header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: the header webhook-timestamp is missing or wrong", ErrWebhook)
	}
	if d := now.Sub(time.Unix(seconds, 0)).Abs(); d > WebhookTolerance {
		return nil, fmt.Errorf("%w: the delivery is more than %v old or early", ErrWebhook, WebhookTolerance)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(header.Get("Webhook-Id") + "." + stamp + "."))
	mac.Write(body)
	sum := mac.Sum(nil)
	for _, signature := range strings.Fields(header.Get("Webhook-Signature")) {
		got, v1 := strings.CutPrefix(signature, "v1,")
		if raw, err := base64.StdEncoding.DecodeString(got); v1 && err == nil && hmac.Equal(raw, sum) {
			var event WebhookEvent
			if err = json.Unmarshal(body, &event); err != nil {
				return nil, fmt.Errorf("%w: decode the event: %w", ErrWebhook, err)
			}
			return &event, nil
		}
	}
	return nil, fmt.Errorf("%w: no signature fits the secret", ErrWebhook)
}
