package admincli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apply"
)

// checkSettings reports settings that still have a placeholder. checkProviders reports the keys of providers.
func (x *Examination) checkSettings(context.Context) (found []Finding) {
	for _, key := range x.Config.Placeholders {
		if isProvider := strings.HasPrefix(key, "PARLEY_PROVIDER_") || strings.HasSuffix(key, "_API_KEY"); !isProvider {
			found = append(found, Finding{"settings", Error, fmt.Sprintf("%s still contains %s", key, control.Placeholder), "enter your value"})
		}
	}
	return found
}

// ReadSpec reads an operator's file.
func ReadSpec(name string) (apply.Spec, error) {
	f, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return apply.Spec{}, err
	}
	defer func() { _ = f.Close() }()
	return apply.Parse(f)
}

// checkFile checks the operator's file and reports its placeholders. Without a file it reports those of the database.
func (s *stored) checkFile(ctx context.Context) (found []Finding) {
	if s.fileErr != nil {
		return []Finding{{"file", Error, fmt.Sprintf("%s: %v", s.fileName, s.fileErr), "correct the file"}}
	}
	where, fix, spec := s.fileName, "enter your value", s.file
	if s.fileName == "" {
		d := s.usable()
		if d == nil {
			return nil // other checks report the cause
		}
		limited, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		var err error
		if spec, err = apply.Read(limited, d.Pool); err != nil {
			return nil // the schema is of another version, which checkDatabase reports
		}
		where, fix = "the database", "enter your value in the operator's file, and apply it"
	}
	for _, path := range apply.Placeholders(spec) {
		found = append(found, Finding{"file", Error, fmt.Sprintf("%s: %s still contains %s", where, path, control.Placeholder), fix})
	}
	if s.fileName != "" && len(found) == 0 {
		found = append(found, Finding{"file", OK, s.fileName + " is valid; parley apply stores it", ""})
	}
	return found
}
