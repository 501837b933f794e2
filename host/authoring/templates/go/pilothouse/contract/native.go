//go:build !wasip1

package contract

// Tests of a plugin run without a host, and say here what it would answer.
var (
	Get = func(kind Kind, _ Scope, name string, _ []string) (*string, error) {
		return nil, &LookupError{Denied, "no host: a test sets contract.Get to answer for " + kind.Name + " " + name}
	}
	Select = func(kind Kind, _ Scope, _ string, _ []string) ([]string, error) {
		return nil, &LookupError{Denied, "no host: a test sets contract.Select to answer for " + kind.Name}
	}
	Now = func() string { return "2026-01-01T00:00:00Z" }
	Log = func(Level, string) {}
)
