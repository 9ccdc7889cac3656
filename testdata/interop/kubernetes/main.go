// Command kubernetes decodes manifests strictly into the API's own types and prints them as a JSON list. A field that the API does
// not have, one that is there twice, or a kind that is not expected here fails. It is a module of its own, so that these types are in
// no other build.
//
//	kubernetes FILE…
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

func run(files []string, out io.Writer) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme)); err != nil {
		return err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	objects := []runtime.Object{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content)))
		for {
			document, err := next(documents)
			if err == io.EOF {
				break
			}
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, object)
		}
	}
	return json.NewEncoder(out).Encode(objects)
}

// next reads one YAML document whole.
func next(documents io.Reader) ([]byte, error) {
	const most = 1 << 20
	buffer := make([]byte, most)
	n, err := documents.Read(buffer)
	return buffer[:n], err
}
