import pytest

from hankwatch.core.secret_names import holds_secret

SECRET = "n0t-a-Word-1"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "OPENAI_API_KEY",
            "OPENAI_API_KEYS",
            "apiKey",
            "api-key",
            "APIKEY",
            "AWS_SECRET_ACCESS_KEY",
            "SECRET_KEY_BASE",
        ),
        *("GITHUB_TOKEN", "GITHUB_TOKENS", "TOKEN2", "NPM_TOKEN_PROD", "CLAUDE_CODE_OAUTH_TOKEN", "accessToken"),
        *("PGPASSWORD", "db_password", "DB_PASSWORDS", "MYSQL_PWD", "SSHPASS", "RIGPASS", "DB_PASS", "HTTP_PASSWD"),
        *("GPG_PASSPHRASE", "DB_CREDENTIALS", "AZURE_CREDENTIAL", "AWS_CREDS", "GH_PAT", "CLIENT_SECRET", "SECRETS"),
        *("REDISCLI_AUTH", "BASIC_AUTH", "_auth", "AUTHORIZATION", "SESSION_COOKIE", "HANKWEAVE_MYSQL_PWD"),
    ],
)
def test_these_names_say_secret(name: str) -> None:
    assert holds_secret(name, SECRET)


@pytest.mark.parametrize(
    "name",
    [
        *("PWD", "OLDPWD", "HOME", "PATH", "EDITOR", "LESS", "", "_", "1"),
        *("SSH_AUTH_SOCK", "KEY_FILE", "TOKEN_URL", "AWS_ACCESS_KEY_ID", "SSH_KEY_TYPE", "PASSWORD_STORE_DIR"),
        *("MAX_TOKENS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "TOKENIZERS_PARALLELISM", "MONKEY", "KEYBOARD", "PATIENCE"),
        *(
            "SSH_ASKPASS",
            "SSH_ASKPASS_REQUIRE",
            "COMPASS",
            "GIT_AUTHOR",
            "GIT_AUTHOR_EMAIL",
            "XAUTHORITY",
            "AUTH_DOMAIN",
        ),
        *("SECRETARY", "PASSENGER_APP", "COMPATIBLE", "DISPATCH"),
    ],
)
def test_these_names_do_not(name: str) -> None:
    assert not holds_secret(name, SECRET)


@pytest.mark.parametrize(
    "value",
    [
        *("/etc/keys/id_rsa", "~/.config/tokens.json", "./secrets/dev-1", "../x/key.pem", "C:\\Users\\me\\key.json"),
        *("/nix/store/0c5b8vw40dy178xlpddw65q9gf1h2186-key", "/home/some body/.aws/credentials"),
    ],
)
def test_a_path_is_no_secret_whatever_the_name(value: str) -> None:
    assert not holds_secret("GOOGLE_APPLICATION_CREDENTIALS", value)
    assert not holds_secret("PGPASSWORD", value)


@pytest.mark.parametrize("value", ["/9j4AAQSkZJRg1", "/abcDEF123xyzABC/456defGHI789", "/Ab+cdefgh=="])
def test_base64_that_begins_with_a_slash_is_no_path(value: str) -> None:
    assert holds_secret("AWS_SECRET_ACCESS_KEY", value)


@pytest.mark.parametrize(
    "value", ["true", "disabled", "Required", "PRODUCTION", "development", "20000000", "1_000_000.5", "3600000ms"]
)
def test_numbers_and_words_are_no_secret_unless_the_name_says_password(value: str) -> None:
    assert not holds_secret("API_AUTH", value)
    assert not holds_secret("CONTEXT_TOKENS", value)
    assert holds_secret("DB_PASSWORD", value)


@pytest.mark.parametrize(
    "value", ["correct horse battery", "correct-horse-battery", "averylongwordwithoutanend", "k1keyskeys"]
)
def test_what_only_resembles_a_word_is_a_secret(value: str) -> None:
    assert holds_secret("MY_SECRET", value)
