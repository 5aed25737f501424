package conformance_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestOpenAPI covers /openapi.json.
func TestOpenAPI(t *testing.T) {
	checkAll(t, "O", []statement{
		{1, "/openapi.json is OpenAPI 3.1 and requires no key", schemaNeedsNoKey},
		{2, "/openapi-3.0.json describes the same paths as OpenAPI 3.0", openAPI30},
		{3, "/docs is an explorer that requires no key and loads nothing from other hosts", explorer},
		{4, "every described path is under /v1 and its methods are served", describedRoutesServed},
		{5, "successful responses are open objects or lists with an example", openResponses},
	})
}

func schemaNeedsNoKey(t *testing.T, s *service) {
	o := s.empty(t)
	if doc := o.do(t, "GET", "/openapi.json", "", "Authorization", "").want(t, 200).object(t); doc["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", doc["openapi"])
	}
}

func openAPI30(t *testing.T, s *service) {
	o := s.empty(t)
	paths := func(file, version string) int {
		doc := o.do(t, "GET", file, "", "Authorization", "").want(t, 200).object(t)
		if doc["openapi"] != version {
			t.Errorf("%s: openapi %v", file, doc["openapi"])
		}
		return len(doc["paths"].(map[string]any))
	}
	if n, old := paths("/openapi.json", "3.1.0"), paths("/openapi-3.0.json", "3.0.3"); n != old || n < 10 {
		t.Errorf("%d and %d paths", n, old)
	}
}

func explorer(t *testing.T, s *service) {
	o := s.empty(t)
	page := o.do(t, "GET", "/docs", "", "Authorization", "").want(t, 200)
	links := regexp.MustCompile(`(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(string(page.body), -1)
	if len(links) < 50 {
		t.Errorf("%d links", len(links))
	}
	for _, link := range links {
		switch path, _, _ := strings.Cut(link[1], "#"); {
		case path == "" || path == "data:,":
		case path[0] != '/' || strings.HasPrefix(path, "//"):
			t.Errorf("the page refers to %s", path)
		default:
			o.do(t, "GET", path, "", "Authorization", "").want(t, 200)
		}
	}
}

func describedRoutesServed(t *testing.T, s *service) {
	o := s.empty(t)
	for _, op := range s.operations(t) {
		if !strings.HasPrefix(op.path, "/v1/") {
			t.Errorf("%s is not under /v1", op.path)
		}
		path := strings.ReplaceAll(op.path, "{id}", "x")
		a := o.do(t, op.method, path, "{}")
		if a.status == 405 || a.status == 404 && a.envelope(t)["message"] == "path not found" {
			t.Errorf("%s %s is not served: %v", op.method, path, a)
		}
		wantError(t, o.do(t, op.method, path, "{}", "Authorization", ""), 401, "api_key_required")
	}
}

func openResponses(t *testing.T, s *service) {
	paths := s.empty(t).do(t, "GET", "/openapi.json", "").want(t, 200).object(t)["paths"].(map[string]any)
	for path, item := range paths {
		for method, op := range item.(map[string]any) {
			for status, r := range op.(map[string]any)["responses"].(map[string]any) {
				content := r.(map[string]any)["content"].(map[string]any)
				if status == "200" && content["text/csv"] != nil {
					continue // this response is a file
				}
				media := content["application/json"].(map[string]any)
				schema := media["schema"].(map[string]any)
				if status[0] == '2' && (media["example"] == nil || schema["properties"] != nil || schema["$ref"] != nil) {
					t.Errorf("%s %s %s: %v", method, path, status, media)
				}
			}
		}
	}
}
