"""Whether an endpoint is there: the cheapest question there is, which models it serves."""

from __future__ import annotations

from curation.errors import CurationError
from curation.teachers.llm.settings import LlmSettings, api_key

__all__ = ["models_of"]

_SECONDS = 10.0


def models_of(settings: LlmSettings) -> set[str] | None:
    """Names of the models that the endpoint says it serves; None where it does not tell, which is no fault.

    Args:
        settings: With an address; see :func:`curation.teachers.llm.settings.require_endpoint`.

    Raises:
        CurationError: It cannot be reached, or refuses the key.
    """
    import openai

    key = api_key(settings)
    where = f"the endpoint {settings.base_url}"
    try:
        with openai.OpenAI(base_url=settings.base_url, api_key=key or "none", max_retries=0, timeout=_SECONDS) as sdk:
            return {model.id for model in sdk.models.list()} or None
    except (openai.AuthenticationError, openai.PermissionDeniedError):
        raise CurationError(f"{where} refuses the key in {settings.key_env}", "Set another key.") from None
    except openai.APIConnectionError as error:
        reason = type(error.__cause__ or error).__name__
        raise CurationError(f"{where} cannot be reached ({reason})", "Start it, or mend llm.base_url.") from None
    except (openai.APIStatusError, openai.APIError, ValueError, TypeError):
        return None
