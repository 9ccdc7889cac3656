package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
)

// guard makes an answer of status 200 whose body is an error an answer of status 500. Stores give such answers when they
// had to begin the answer before they knew its end, and proxies in front of them do so for anything.
type guard struct{ real http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.real.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK || givesObject(r) {
		return answer, err
	}
	var head bytes.Buffer
	failed, err := isError(io.TeeReader(answer.Body, &head))
	if err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	answer.Body = &rest{io.MultiReader(&head, answer.Body), answer.Body}
	if failed {
		answer.StatusCode = http.StatusInternalServerError
	}
	return answer, nil
}

// givesObject reports whether the answer's body is the bytes of an object, or there is none.
func givesObject(r *http.Request) bool {
	q := r.URL.Query()
	return r.Method == http.MethodHead || r.Method == http.MethodGet && !q.Has("list-type") && !q.Has("uploads") && !q.Has("location")
}

// isError reads as far as the name of the document, and reports whether it is an error. What is no XML is none.
func isError(body io.Reader) (bool, error) {
	source := &failing{r: body}
	for d := xml.NewDecoder(source); ; {
		token, err := d.Token()
		if source.err != nil {
			return false, source.err
		}
		if err != nil {
			return false, nil
		}
		if start, ok := token.(xml.StartElement); ok {
			return start.Name.Local == "Error", nil
		}
	}
}

// failing remembers the error of a reader, unless that is its end.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// rest is a body of which a part was read already.
type rest struct {
	io.Reader
	io.Closer
}
