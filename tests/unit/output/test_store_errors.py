"""What the answers of object stores mean, by their texts as obstore gives them."""

from __future__ import annotations

import pytest

from engine.config.output_place import StoreUrl, output_place
from engine.errors import EngineError
from engine.output.storage.store_errors import StoreAwayError, store_error

URL = StoreUrl.parse("s3://lake/shop/")
SECRET = "c2VjcmV0IHNpZ25hdHVyZQ"


def answer(status: str, code: str = "") -> Exception:
    body = f"<Error><Code>{code}</Code><StringToSign>{SECRET}</StringToSign></Error>"
    return Exception(f"Generic S3 error: GET - Server returned non-2xx status code: {status}: {body}")


@pytest.mark.parametrize(
    "error",
    [
        answer("503 Service Unavailable", "SlowDown"),
        answer("500 Internal Server Error", "InternalError"),
        answer("429 Too Many Requests"),
        answer("409 Conflict", "ConditionalRequestConflict"),
        answer("400 Bad Request", "RequestTimeout"),
        Exception("Generic S3 error: Error performing PUT in 1ms - HTTP error: error sending request"),
    ],
)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    problem = store_error(error, URL, "writing")
    assert isinstance(problem, StoreAwayError)
    assert str(problem).startswith("writing s3://lake/shop failed: the store ")
    assert SECRET not in str(problem)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (answer("403 Forbidden", "RequestTimeTooSkewed"), "this machine's clock differs too much from"),
        (answer("403 Forbidden", "AccessDenied"), "these credentials may not do that; permit"),
        (answer("403 Forbidden"), "these credentials may not do that; permit"),
        (answer("403 Forbidden", "SignatureDoesNotMatch"), "the store refuses the secret key"),
        (answer("400 Bad Request", "ExpiredToken"), "the credentials have expired"),
        (answer("404 Not Found", "NoSuchBucket"), "there is no bucket `lake`"),
        (answer("405 Method Not Allowed", "NoWay"), "the store answered 405 NoWay; check the URL"),
        (Exception("Error performing PUT http://169.254.169.254/latest"), "no credentials were found"),
        (Exception("Generic S3 error: HTTP error: builder error\n source: BadScheme"), "an http:// address"),
    ],
)
def test_what_does_not_pass_is_a_sentence(error: Exception, reason: str) -> None:
    problem = store_error(error, URL, "writing")
    assert not isinstance(problem, StoreAwayError)
    assert reason in str(problem)
    assert SECRET not in str(problem)
    assert "\n" not in str(problem)


@pytest.mark.parametrize(
    ("url", "variable"),
    [("s3://lake", "AWS_ALLOW_HTTP"), ("gs://lake", "GOOGLE_ALLOW_HTTP"), ("az://lake", "AZURE_ALLOW_HTTP")],
)
def test_the_variable_that_permits_http_is_that_of_the_store(url: str, variable: str) -> None:
    error = Exception("HTTP error: builder error\n source: BadScheme")
    assert f"set {variable}=true" in str(store_error(error, StoreUrl.parse(url), "reading"))


@pytest.mark.parametrize(
    ("given", "bucket", "prefix"),
    [("s3://lake", "lake", ""), ("gs://lake/", "lake", ""), ("az://lake/a/b/", "lake", "a/b")],
)
def test_places_of_outputs(given: str, bucket: str, prefix: str) -> None:
    place = output_place(given)
    assert isinstance(place, StoreUrl)
    assert (place.bucket, place.prefix) == (bucket, prefix)
    assert str(place / "_log") == f"{place}/_log"
    assert output_place(place) is place


@pytest.mark.parametrize(
    "given", ["s3://", "s3://a//b", "s3://lake/../x", "http://lake/x", "s3://lake/x?y=1"]
)
def test_what_is_no_place(given: str) -> None:
    with pytest.raises(EngineError):
        output_place(given)


@pytest.mark.parametrize("given", ["s3://key:top-secret@lake/x", "s3://top-secret@lake/x"])
def test_credentials_in_a_url_are_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(EngineError, match="contains credentials") as refused:
        output_place(given)
    assert "top-secret" not in str(refused.value)
