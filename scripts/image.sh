#!/usr/bin/env bash
# Images of the products in deploy/: builds, pushes, deploys and publishes them. It never guesses the name of an image, and signs nothing but
# what a registry has given a digest.
#
#   scripts/image.sh build|push|deploy|publish llm-operator|pilothouse REGISTRY/NAME:TAG
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "image: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || fail "$1 is missing: $2"; }

verb=$1 product=$2 image=$3
case $product in llm-operator | pilothouse) ;; *) fail "PRODUCT is llm-operator or pilothouse, not '$product'" ;; esac
case $image in
'') fail "name the image: IMG=registry.example.com/team/$product:0.1.0" ;;
*[!A-Za-z0-9._:/@-]*) fail "'$image' is no name of an image" ;;
esac

build() { docker build --file deploy/Dockerfile --target "$product" --tag "$image" .; }

deploy() {
  need kubectl https://kubernetes.io/docs/tasks/tools/
  sed "s|^\( *image:\) .*|\1 $image|" "deploy/$product.yaml" | kubectl apply --server-side -f -
}

# One build for all platforms, with the provenance that buildkit writes; a bill of materials of what is in the image; and signatures of both.
publish() {
  need syft https://github.com/anchore/syft
  need cosign https://github.com/sigstore/cosign
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  docker buildx build --file deploy/Dockerfile --target "$product" --platform linux/amd64,linux/arm64 \
    --provenance mode=max --metadata-file "$work/metadata.json" --tag "$image" --push .
  digest=$(sed -n 's/.*"containerimage.digest": *"\(sha256:[0-9a-f]\{64\}\)".*/\1/p' "$work/metadata.json")
  [ -n "$digest" ] || fail "the build does not say its digest"
  name=${image%@*}
  case ${name##*/} in *:*) name=${name%:*} ;; esac
  syft scan "$name@$digest" --output "cyclonedx-json=$work/sbom.json"
  cosign sign --yes "$name@$digest"
  cosign attest --yes --type cyclonedx --predicate "$work/sbom.json" "$name@$digest"
  echo "$name@$digest"
}

case $verb in
build) need docker https://docs.docker.com/get-docker/ && build ;;
push) need docker https://docs.docker.com/get-docker/ && docker push "$image" ;;
deploy) deploy ;;
publish) need docker https://docs.docker.com/get-docker/ && publish ;;
*) fail "'$verb' is none of build, push, deploy, publish" ;;
esac
