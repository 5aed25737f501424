package remote

import (
	"encoding/json"
	"net/http"
	"time"
)

// A Fake is a scripted classifier for tests and benchmarks.
type Fake struct {
	P     float64
	Delay time.Duration
	// Fault is an HTTP status to return instead; 0 for none.
	Fault int
	// OnQuestion receives every question, if not nil.
	OnQuestion func(Question)
}

// ServeHTTP implements http.Handler.
func (f Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q Question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if f.OnQuestion != nil {
		f.OnQuestion(q)
	}
	select {
	case <-time.After(f.Delay):
	case <-r.Context().Done():
		return
	}
	if f.Fault != 0 {
		w.WriteHeader(f.Fault)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Answer{&f.P}) // the client may have left
}
