"""The kinds of secrets whose spelling alone gives them away."""

from typing import NamedTuple

_CHARACTER = r"[A-Za-z0-9._~+/-]"
_VARIABLE = (
    r"(?:[A-Z0-9][A-Z0-9_]*)?(?:(?:API|ACCESS|SECRET|PRIVATE|AUTH|ENCRYPTION)_?KEY"
    r"|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|PWD)S?(?:_[A-Z0-9]+)*"
)
_URL_PARAMETER = (
    r"(?i:[?&](?:api[_-]?key|key|access[_-]?token|auth[_-]?token|token|client[_-]?secret|x-amz-signature|sig)=)"
)


class SecretKind(NamedTuple):
    """One kind of secret and how it is found, in re2 syntax."""

    name: str
    pattern: str
    """Over text, with one group around the secret."""
    in_a_line: str
    """Looser, over the encoded JSON line. There the character before or after a secret may be the letter of an
    escape (``\n``), so it has no word boundaries and no white space."""
    needs_digit: bool = False
    """A match without one is a word or an identifier of code, not a secret."""


SECRET_KINDS = (
    SecretKind(
        "private-key",
        r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*KEY(?: BLOCK)?-----|\z))",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
    ),
    SecretKind("anthropic-key", r"\b(sk-ant-[A-Za-z0-9_-]{8,})", r"sk-ant-"),
    SecretKind(
        "openai-key",
        r"\b(sk-(?:(?:proj|svcacct|admin|None|or-v1|lf)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,}))",
        r"sk-(?:proj|svcacct|admin|None|or-v1|lf)-|sk-[A-Za-z0-9]{20}",
        needs_digit=True,
    ),
    SecretKind(
        "github-token", r"\b(gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,})", r"gh[pousr]_|github_pat_"
    ),
    SecretKind(
        "gitlab-token", r"\b(gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{16,})", r"gl[a-z]{2,4}-[A-Za-z0-9_-]{16}"
    ),
    SecretKind(
        "aws-key-id",
        r"(?:^|[^A-Za-z0-9+/])((?:AKIA|ASIA)[A-Z0-9]{16})\b",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    ),
    SecretKind("google-key", r"(?:^|[^A-Za-z0-9+/_-])(AIza[A-Za-z0-9_-]{30,})", r"AIza[A-Za-z0-9_-]{30}"),
    SecretKind("google-oauth", r"\b(ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})", r"ya29\.|GOCSPX-"),
    SecretKind("slack-token", r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})", r"xox[abeoprs]-|xapp-"),
    SecretKind(
        "stripe-key",
        r"\b((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,})",
        r"[sr]k_(?:live|test)_|whsec_",
    ),
    SecretKind(
        "registry-token",
        r"\b(npm_[A-Za-z0-9]{30,}|pypi-AgEI[A-Za-z0-9_-]{30,}|dop_v1_[a-f0-9]{40,})",
        r"npm_[A-Za-z0-9]{30}|pypi-AgEI|dop_v1_",
    ),
    SecretKind(
        "model-key",
        r"\b(hf_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{30,})",
        r"(?:hf_|gsk_|xai-|r8_|pplx-)[A-Za-z0-9]{30}",
    ),
    SecretKind("sendgrid-key", r"\b(SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})", r"SG\.[A-Za-z0-9_-]{16}"),
    SecretKind(
        "jwt",
        r"\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
        r"eyJ[A-Za-z0-9_-]{8,}\.eyJ",
    ),
    SecretKind(
        "authorization",
        rf"(?i:authorization[\\\"']*\s*[:=]\s*[\\\"']*(?:basic|bearer|token|apikey|key)\s+)({_CHARACTER}{{8,}}=*)",
        r"(?i:authorization)",
    ),
    SecretKind(
        "authorization",
        rf"(?i:authorization|\bx-(?:api-key|goog-api-key|auth-token))(?:[\\\"']*\s*[:=]\s*[\\\"']*)({_CHARACTER}{{16,}}=*)",
        r"(?i:x-(?:api-key|goog-api-key|auth-token))",
        needs_digit=True,
    ),
    SecretKind("bearer", rf"(?i:\bbearer)\s+({_CHARACTER}{{20,}}=*)", r"(?i:bearer)", needs_digit=True),
    SecretKind(
        "url-key",
        rf"{_URL_PARAMETER}([A-Za-z0-9%._~+/-]{{8,}}=*)",
        _URL_PARAMETER,
    ),
    SecretKind(
        "url-password",
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@\"'\[\]]*:([^\s/:@\"'\[\]<{$][^\s/:@\"'\[\]]{2,})@",
        r"://[^/:@ \"]*:[^/:@ \"]+@",
    ),
    SecretKind(
        "env-value",
        rf"\b{_VARIABLE}=[\\\"']*([A-Za-z0-9+][A-Za-z0-9+/_-]{{15,}}=*)",
        r"(?:KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|PWD)[A-Z0-9_]*=",
        needs_digit=True,
    ),
)
"""In order of precedence among those that start at the same character."""
