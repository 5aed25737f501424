package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
)

// Change is a difference between two objects. Secrets are replaced by HiddenSecret.
type Change struct {
	Path   string `json:"path"` // such as organizations[acme].trunks[main].proxy
	Before any    `json:"before"`
	After  any    `json:"after"` // nil: the value is removed
}

// String returns the change as one line.
func (c Change) String() string {
	switch {
	case c.Before == nil:
		return fmt.Sprintf("+ %s%s", c.Path, leafText(": ", c.After))
	case c.After == nil:
		return fmt.Sprintf("- %s%s", c.Path, leafText(": ", c.Before))
	case c.Before == HiddenSecret:
		return fmt.Sprintf("~ %s: the secret changes", c.Path)
	default:
		return fmt.Sprintf("~ %s: %s → %s", c.Path, leafText("", c.Before), leafText("", c.After))
	}
}

// maxShown is the maximum number of characters of a value in a plan.
const maxShown = 60

// leafText returns a value as text after prefix. The content of an object is not shown.
func leafText(prefix string, v any) string {
	if _, object := v.(map[string]any); object {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	shown := []rune(string(text))
	if len(shown) > maxShown {
		shown = append(shown[:maxShown-1], '…')
	}
	return prefix + string(shown)
}

// Diff compares two objects of the operator's file.
func Diff(before, after any) []Change {
	all := []Change{}
	was, is := plainOf(before), plainOf(after)
	if was == nil {
		was = map[string]any{} // so that each object of the file has its own change
	}
	compare("", was, is, &all)
	return all
}

// Placeholders returns the paths of the values that contain control.Placeholder.
func Placeholders(s Spec) (paths []string) {
	findPlaceholders("", plainOf(s), &paths)
	return paths
}

func findPlaceholders(path string, v any, paths *[]string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			findPlaceholders(strings.TrimPrefix(path+"."+key, "."), v[key], paths)
		}
	case []any:
		for i, item := range v {
			at := fmt.Sprint(i)
			if len(named(v)) > 0 {
				at = partName(item)
			}
			findPlaceholders(fmt.Sprintf("%s[%s]", path, at), item, paths)
		}
	default:
		if control.HasPlaceholder(fmt.Sprint(v)) { // also a secretValue
			*paths = append(*paths, path)
		}
	}
}

func plainOf(v any) any { return plain(reflect.ValueOf(v)) }

// secrets returns the secrets of a plain value.
func secrets(v any) (all []string) {
	switch v := v.(type) {
	case secretValue:
		return []string{string(v)}
	case map[string]any:
		for _, value := range v {
			all = append(all, secrets(value)...)
		}
	case []any:
		for _, value := range v {
			all = append(all, secrets(value)...)
		}
	}
	return all
}

// secretValue stands for a secret in a plain value.
type secretValue string

// plain converts a value to maps, lists and scalars. Empty values become nil, but false stays false.
func plain(v reflect.Value) any {
	if !v.IsValid() {
		return nil
	}
	switch raw := v.Interface().(type) {
	case media.Secret:
		if raw == "" {
			return nil
		}
		return secretValue(raw)
	case RawValue:
		var value any
		if json.Unmarshal(raw.RawMessage, &value) != nil {
			return nil
		}
		return value
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return plain(v.Elem())
	case reflect.Bool:
		return v.Bool()
	case reflect.Struct, reflect.Map, reflect.Slice:
		return plainParts(v)
	default:
		if v.IsZero() {
			return nil
		}
		return v.Interface()
	}
}

// plainParts converts an object or a list.
func plainParts(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		fields := map[string]any{}
		addPlain(v, fields)
		return notEmpty(fields)
	case reflect.Map:
		fields := map[string]any{}
		for _, key := range v.MapKeys() {
			fields[key.String()] = plain(v.MapIndex(key))
		}
		return notEmpty(fields)
	default:
		if v.Len() == 0 {
			return nil
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plain(v.Index(i))
		}
		return list
	}
}

func addPlain(v reflect.Value, to map[string]any) {
	for f, field := range v.Fields() {
		switch name := f.Tag.Get("yaml"); name {
		case ",inline":
			addPlain(field, to)
		case "-":
		default:
			to[name] = plain(field)
		}
	}
}

func notEmpty(fields map[string]any) any {
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
	if len(fields) == 0 {
		return nil
	}
	return fields
}

func compare(path string, before, after any, all *[]Change) {
	was, isObject := before.(map[string]any)
	is, stays := after.(map[string]any)
	if isObject && stays {
		keys := slices.Collect(maps.Keys(is))
		for key := range was {
			if _, both := is[key]; !both {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			compare(strings.TrimPrefix(path+"."+key, "."), was[key], is[key], all)
		}
		return
	}
	had, have := named(before), named(after)
	if had != nil && have != nil {
		keys := slices.Sorted(maps.Keys(have))
		for _, key := range slices.Sorted(maps.Keys(had)) {
			if _, both := have[key]; !both {
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			compare(fmt.Sprintf("%s[%s]", path, key), had[key], have[key], all)
		}
		return
	}
	if !reflect.DeepEqual(before, after) {
		*all = append(*all, Change{path, hide(before), hide(after)})
		addParts(path, before, after, all)
	}
}

// addParts adds a change for each named object in the lists of an object that is created or removed.
func addParts(path string, before, after any, all *[]Change) {
	created := before == nil
	if !created && after != nil {
		return
	}
	object, _ := before.(map[string]any)
	if created {
		object, _ = after.(map[string]any)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		list, _ := object[key].([]any)
		parts := named(list)
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			at := fmt.Sprintf("%s.%s[%s]", path, key, name)
			if created {
				compare(at, nil, parts[name], all)
			} else {
				compare(at, parts[name], nil, all)
			}
		}
	}
}

// named returns the objects of a list by their name. It returns nil for other values; an empty list has no objects.
func named(v any) map[string]any {
	if v == nil {
		return map[string]any{}
	}
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	all := map[string]any{}
	for _, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		name := partName(object)
		if _, twice := all[name]; twice || name == "" {
			return nil
		}
		all[name] = object
	}
	return all
}

// partName returns the name of an object in a list, or "" if it has none.
func partName(item any) string {
	object, _ := item.(map[string]any)
	var parts []string
	for _, key := range []string{"name", "url", "trunk", "of", "to"} {
		if text, ok := object[key].(string); ok && (key != "url" || len(parts) == 0) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

// hide replaces the secrets of a plain value.
func hide(v any) any {
	switch v := v.(type) {
	case secretValue:
		return HiddenSecret
	case map[string]any:
		shown := map[string]any{}
		for key, value := range v {
			shown[key] = hide(value)
		}
		return shown
	case []any:
		shown := make([]any, len(v))
		for i, value := range v {
			shown[i] = hide(value)
		}
		return shown
	default:
		return v
	}
}
