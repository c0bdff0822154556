import base64
import hashlib
import time
from typing import Any

import orjson
import pytest

from hankwatch.core.redaction import Redactor

PLAIN = Redactor()
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+abc/\ndef=\n-----END RSA PRIVATE KEY-----"

SECRETS = {
    "anthropic-key": ["sk-ant-api03-Zm9vYmFy-_x", "sk-ant-REDACTED"],
    "openai-key": ["sk-proj-abcDEF1234567890_-xy", "sk-0123456789abcdefghij0123456789"],
    "github-token": ["ghp_abcdefghijklmnopqrstuvwxyz0123456789", "github_pat_11ABCDEFG0abcdefghijklmnop"],
    "gitlab-token": ["glpat-abcdefghij0123456789"],
    "aws-key-id": ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"],
    "google-key": ["AIzaSyD-abcdefghijklmnopqrstuvwxyz01234"],
    "google-oauth": ["ya29.a0AfH6SMBabcdefghij-_klmnop", "GOCSPX-abcdefghijklmnopqrstuvwx"],
    "slack-token": ["xoxb-123456789012-abcdefABCDEF"],
    "stripe-key": ["sk_live_abcdefghijklmnop1234"],
    "registry-token": ["npm_abcdefghijklmnopqrstuvwxyz0123456789"],
    "model-key": ["hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "gsk_abcdefghijklmnopqrstuvwxyz012345"],
    "sendgrid-key": ["SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuv"],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"],
    "private-key": [PEM, "-----BEGIN PRIVATE KEY-----\nMIIEow cut off by a limit"],
}
EVERY_SECRET = pytest.mark.parametrize(
    ("kind", "secret"), [(kind, secret) for kind, secrets in SECRETS.items() for secret in secrets]
)


def mark(kind: str, secret: str) -> str:
    return f"[redacted:{kind}:{hashlib.sha256(secret.encode()).hexdigest()[:8]}]"


def suspected(value: Any, redactor: Redactor = PLAIN) -> bool:
    return redactor.suspects(orjson.dumps({"data": value}))


@EVERY_SECRET
def test_a_secret_is_replaced_by_its_kind_and_hash(kind: str, secret: str) -> None:
    before = "" if kind == "private-key" else " and then"
    assert PLAIN.text(f"the key is\n{secret}{before}") == f"the key is\n{mark(kind, secret)}{before}"


@EVERY_SECRET
def test_a_line_that_holds_a_secret_is_suspected(kind: str, secret: str) -> None:
    assert suspected(secret)
    assert suspected(f"tab\t{secret}\nline")
    assert suspected({"nested": ["\n" + secret]})


@pytest.mark.parametrize(
    ("kind", "text", "secret"),
    [
        ("authorization", "Authorization: Bearer abcd.efgh", "abcd.efgh"),
        ("authorization", '{"authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
        ("authorization", r"{\"Authorization\": \"token 0123456789abcdef\"}", "0123456789abcdef"),
        ("authorization", "x-api-key: 0123456789abcdef", "0123456789abcdef"),
        ("authorization", "AUTHORIZATION=0123456789abcdef", "0123456789abcdef"),
        ("bearer", "curl with bearer\n0123456789abcdefghij", "0123456789abcdefghij"),
        ("url-key", "GET https://x.example/v1?alt=sse&key=abcdefgh1234 200", "abcdefgh1234"),
        ("url-key", "https://x.example/?access_token=abcdefgh1234#top", "abcdefgh1234"),
        ("url-password", "postgres://user:hunter2!@db:5432/x", "hunter2!"),
        ("env-value", "export SOME_API_KEY='abcdefgh12345678'", "abcdefgh12345678"),
        ("env-value", "DB_PASSWORD_MAIN=abcdefgh12345678", "abcdefgh12345678"),
        ("env-value", "PGPASSWORD=abcdefgh12345678 psql", "abcdefgh12345678"),
        ("env-value", "MYSQL_PWD=abcdefgh12345678 OPENAI_API_KEYS=x", "abcdefgh12345678"),
        ("env-value", "GITHUB_TOKENS=abcdefgh12345678", "abcdefgh12345678"),
    ],
)
def test_only_the_secret_part_is_replaced(kind: str, text: str, secret: str) -> None:
    assert PLAIN.text(text) == text.replace(secret, mark(kind, secret))
    assert suspected(text)


@pytest.mark.parametrize(
    "text",
    [
        "task-force-for-a-really-long-name disk-usage-of-the-largest-folders-0123456789",
        "Authorization is required; the bearer of this token must sign",
        "see https://example.org/list?key=name&token=1 and http://localhost:8080/@user",
        "API_KEY = os.environ['API_KEY']; TOKEN=$(cat token); PRIMARY_KEY=created_at_index_id",
        "AKIA is a prefix; AKIAIOSFODNN7EXAMPLEANDMORE is no key",
        '{"Authorization": raw_response.request.headers, "x-api-key": resolved_api_key_of_it}',
        "the bearer SubjectConfirmationData; SOME_TOKEN=a_function_with_a_long_name; sk-abcdefghijklmnopqrstuvwxyz",
        "https://<username>:<password>@proxy f'postgresql://{user}:{password}@{host}/' http://u:$PASSWORD@h",
        "PWD=/home/somebody/project-0123456789 OLDPWD=/srv/0123456789abcdef MONKEY=abcdefgh12345678",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PUBLIC KEY-----",
        "commit 0123456789abcdef0123456789abcdef01234567 by sk-learn and ghp_short",
    ],
)
def test_ordinary_text_is_the_same_object(text: str) -> None:
    assert PLAIN.text(text) is text


def test_an_image_that_looks_alike_is_untouched() -> None:
    image = base64.b64encode(bytes(range(252)) * 40).decode()
    for alike in ("AKIAIOSFODNN7EXAMPLE", "AIzaSyDxabcdefghijklmnopqrstuvwxyz01234", "/AKIAIOSFODNN7EXAMPLE/"):
        text = f"data:image/png;base64,{image}{alike}{image}"
        assert PLAIN.text(text) is text


def test_the_same_secret_has_the_same_mark_everywhere() -> None:
    text = PLAIN.text("ghp_abcdefghijklmnopqrstuvwxyz0123456789 ghp_abcdefghijklmnopqrstuvwxyz0123456789")
    first, second = text.split()
    assert first == second


def test_the_value_of_a_known_variable_is_found_anywhere() -> None:
    redactor = Redactor({"MY_SECRET": "correct horse"})
    assert redactor.text("<correct horse>") == f"<{mark('MY_SECRET', 'correct horse')}>"


@pytest.mark.parametrize(
    "value", ['quo"te\\back', "li\nne one", "gr\u00fc\u00dfe-\U0001f600-x", "P@ss/word:1?", "long tail  \n"]
)
def test_a_known_value_is_found_in_text_in_json_and_in_json_within_text(value: str) -> None:
    redactor = Redactor({"S": value})
    inner = orjson.dumps({"password": value}).decode()
    for text in (value, f"x{value}y", inner, orjson.dumps({"output": inner}).decode()):
        assert value.strip() not in redactor.text(text)
        assert "[redacted:S:" in redactor.text(text)
        assert suspected(text, redactor)


def test_a_known_value_that_holds_another_is_replaced_as_a_whole() -> None:
    redactor = Redactor({"SHORT": "abcdefgh", "LONG": "abcdefgh-ijkl"})
    assert redactor.text("abcdefgh-ijkl abcdefgh") == f"{mark('LONG', 'abcdefgh-ijkl')} {mark('SHORT', 'abcdefgh')}"


def test_a_pattern_that_would_take_a_part_leaves_nothing_of_a_known_value() -> None:
    redactor = Redactor({"S": "abcdefgh$ijkl"})
    assert redactor.text("https://x/?key=abcdefgh$ijkl") == f"https://x/?key={mark('S', 'abcdefgh$ijkl')}"


def test_a_match_that_is_no_secret_hides_none_inside_it() -> None:
    secret = "sk-ant-abcdefghijklmnopqrst"
    assert PLAIN.text(f"Bearer {secret}") == f"Bearer {mark('anthropic-key', secret)}"


def test_short_values_are_ignored() -> None:
    assert Redactor({"S": "1234567"}).text("1234567") == "1234567"


def test_the_environment_tells_which_values_are_secret() -> None:
    environment = {"OPENAI_API_KEY": "value-of-it", "HOME": "/home/somebody", "LESS": "value-of-less"}
    redactor = Redactor.from_environment(environment)
    assert redactor.text("value-of-it") == mark("OPENAI_API_KEY", "value-of-it")
    assert redactor.text("/home/somebody value-of-less") == "/home/somebody value-of-less"


@pytest.mark.parametrize("name", ["LESS", "HANKWEAVE_LESS", "PWD"])
def test_a_variable_that_was_named_is_secret_whatever_it_looks_like(name: str) -> None:
    redactor = Redactor.from_environment({name: "/ordinary"}, variables=("LESS", "PWD"))
    assert redactor.text("/ordinary") == mark(name, "/ordinary")


def test_a_value_that_is_no_text_is_survived() -> None:
    assert "[redacted:" in Redactor({"S": "abc\udcffdefgh"}).text("abc\ufffddefgh")


def test_data_is_redacted_in_keys_and_values_and_shares_the_rest() -> None:
    secret = SECRETS["github-token"][0]
    data = {"a": {"x": [1, None]}, secret: [secret, {"deep": f"<{secret}>"}]}
    clean = PLAIN.data(data)
    expected = mark("github-token", secret)
    assert clean == {"a": {"x": [1, None]}, expected: [expected, {"deep": f"<{expected}>"}]}
    assert clean["a"] is data["a"]
    assert secret in data


def test_data_without_a_secret_is_the_same_object() -> None:
    data = {"a": ["b", {"c": 1.5}]}
    assert PLAIN.data(data) is data


def test_switched_off_it_changes_and_suspects_nothing() -> None:
    redactor = Redactor({"S": "correct horse"}, enabled=False)
    data = {"a": "correct horse"}
    assert redactor.data(data) is data
    assert redactor.text("correct horse") == "correct horse"
    assert not suspected("correct horse", redactor)


def test_redacting_twice_changes_nothing_more() -> None:
    redactor = Redactor({"A_TOKEN": "hunter2hunter2"})
    text = " ".join(secret for secrets in SECRETS.values() for secret in secrets)
    text += "?key=hunter2hunter2 A_TOKEN=hunter2hunter2 x://u:hunter2hunter2@h Bearer hunter2hunter2"
    once = redactor.text(text)
    assert "hunter2" not in once
    assert redactor.text(once) is once


@pytest.mark.parametrize(
    "pattern",
    [
        "sk-",
        "-----BEGIN PRIVATE KEY",
        "a://b:",
        "eyJ",
        "A_KEY_",
        "Bearer ",
        "?key=",
        "A",
        "x-api-key=aaaaaaaaaaaaaaaa",
        "\ud800",
    ],
)
def test_time_grows_with_the_length_alone(pattern: str) -> None:
    text = pattern * (2_000_000 // len(pattern))
    started = time.process_time()
    PLAIN.text(text)
    assert time.process_time() - started < 2
