package tts

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

func TestDeepgramRequest(t *testing.T) {
	speed := pipeline.Options{Speed: 2, Extra: map[string]any{"mip_opt_out": true, "model": "other"}}
	for _, tt := range []struct {
		style pipeline.Style
		want  url.Values
	}{
		{pipeline.Style{Rate: 8000}, url.Values{"model": {"aura-2-thalia-en"}, "encoding": {"mulaw"}, "sample_rate": {"8000"}}},
		{pipeline.Style{Rate: 16000, Language: "es-MX", Options: speed}, url.Values{
			"model": {"aura-2-celeste-es"}, "encoding": {"linear16"}, "sample_rate": {"16000"}, "speed": {"1.5"}, "mip_opt_out": {"true"},
		}},
		{pipeline.Style{Rate: 8000, Voice: "aura-2-fabian-de", Options: speed}, url.Values{
			"model": {"aura-2-fabian-de"}, "encoding": {"mulaw"}, "sample_rate": {"8000"}, "mip_opt_out": {"true"},
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := fakeprovider.NewNet()
			var got url.Values
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.Query()
				http.Error(w, "no", http.StatusTeapot)
			})}
			go func() { _ = srv.Serve(n) }()
			defer func() { _ = srv.Close() }()
			if _, err := (Deepgram{URL: "ws://fake/", Dial: n.Dial}).Open(t.Context(), tt.style); err == nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("requested %v, want %v: %v", got, tt.want, err)
			}
		})
	}
}
