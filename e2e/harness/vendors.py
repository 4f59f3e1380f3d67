"""The three protocols that the clients speak to their models: Anthropic's, OpenAI's and Google's."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from harness.calls import Tool
from harness.script import Reply
from harness.server import Asked, strings


def _name(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def _asked(items: list[Any], is_models: Any, tools: list[str]) -> Asked:
    """`is_models` says of an item of the conversation whether the model has made it."""
    made = [number for number, item in enumerate(items) if is_models(item)]
    first, last = (made[0], made[-1]) if made else (len(items), -1)
    return Asked(
        opening="\n".join(strings(items[:first])),
        told="\n".join(strings(items[last + 1 :])),
        conversation="\n".join(strings(items)),
        tools=tuple(tools),
    )


def _event(data: dict[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


class Anthropic:
    """The Messages API."""

    def asked(self, path: str, body: dict[str, Any]) -> Asked | None:
        tools = [tool.get("name", "") for tool in body.get("tools") or []]
        if not path.startswith("/v1/messages") or "count_tokens" in path or not tools:
            return None
        return _asked(body.get("messages", []), lambda message: message.get("role") == "assistant", tools)

    def aside(self, path: str, body: dict[str, Any]) -> Any:
        if "count_tokens" in path:
            return {"input_tokens": 1000}
        if path.startswith("/v1/messages"):  # a title of the session and the like
            return self.whole(body, Reply(text='{"title": "A task"}'), [])
        return {"data": [], "has_more": False}

    def whole(self, body: dict[str, Any], reply: Reply, tools: list[Tool]) -> Any:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
        for tool in tools:
            blocks.append({"type": "tool_use", "id": _name("toolu"), "name": tool.name, "input": tool.input})
        return {
            "id": _name("msg"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": blocks,
            "stop_reason": "tool_use" if tools else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": reply.tokens_in,
                "output_tokens": reply.tokens_out,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        }

    def stream(self, path: str, body: dict[str, Any], reply: Reply, tools: list[Tool]) -> Iterable[str] | None:
        return self._events(self.whole(body, reply, tools)) if body.get("stream") else None

    def _events(self, message: dict[str, Any]) -> Iterator[str]:
        usage = message["usage"]
        begun = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        yield _event({"type": "message_start", "message": begun})
        for index, block in enumerate(message["content"]):
            if block["type"] == "text":
                start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                start = {**block, "input": {}}
            yield _event({"type": "content_block_start", "index": index, "content_block": start})
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
            yield _event({"type": "content_block_stop", "index": index})
        ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield _event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}})
        yield _event({"type": "message_stop"})


class OpenAI:
    """The Responses API."""

    def asked(self, path: str, body: dict[str, Any]) -> Asked | None:
        if not path.rstrip("/").endswith("/responses"):
            return None
        items = body.get("input") or []
        tools = [tool.get("name") or tool.get("type") or "" for tool in body.get("tools") or []]
        return _asked(items, self._is_models, tools)

    def _is_models(self, item: dict[str, Any]) -> bool:
        kind = str(item.get("type"))
        return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")

    def aside(self, path: str, body: dict[str, Any]) -> Any:
        return {"data": [], "models": []}

    def whole(self, body: dict[str, Any], reply: Reply, tools: list[Tool]) -> Any:
        raise NotImplementedError("the client asks for a stream")

    def stream(self, path: str, body: dict[str, Any], reply: Reply, tools: list[Tool]) -> Iterable[str] | None:
        return self._events(reply, tools)

    def _events(self, reply: Reply, tools: list[Tool]) -> Iterator[str]:
        name = _name("resp")
        yield _event({"type": "response.created", "response": {"id": name}})
        for item in self._items(reply, tools):
            yield _event({"type": "response.output_item.done", "item": item})
        usage = {
            "input_tokens": reply.tokens_in,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": reply.tokens_out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.tokens_in + reply.tokens_out,
        }
        yield _event({"type": "response.completed", "response": {"id": name, "usage": usage}})

    def _items(self, reply: Reply, tools: list[Tool]) -> Iterator[dict[str, Any]]:
        if reply.text:
            content = [{"type": "output_text", "text": reply.text}]
            yield {"type": "message", "role": "assistant", "id": _name("msg"), "content": content}
        for tool in tools:
            call = {"call_id": _name("call"), "name": tool.name}
            if tool.namespace:
                call["namespace"] = tool.namespace
            if tool.raw is not None:
                yield {"type": "custom_tool_call", **call, "input": tool.raw}
            else:
                yield {"type": "function_call", **call, "arguments": json.dumps(tool.input)}


class Google:
    """`generateContent` and `streamGenerateContent`."""

    def asked(self, path: str, body: dict[str, Any]) -> Asked | None:
        tools = self._tools(body)
        if "enerateContent" not in path or not tools:
            return None
        return _asked(body.get("contents", []), lambda content: content.get("role") == "model", tools)

    def _tools(self, body: dict[str, Any]) -> list[str]:
        return [one.get("name", "") for tool in body.get("tools") or [] for one in tool.get("functionDeclarations", [])]

    def aside(self, path: str, body: dict[str, Any]) -> Any:
        if "countTokens" in path:
            return {"totalTokens": 1000}
        return self.whole(body, Reply(text="{}"), []) if "enerateContent" in path else {"models": []}

    def whole(self, body: dict[str, Any], reply: Reply, tools: list[Tool]) -> Any:
        parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
        if not tools and "complete_task" in self._tools(body):  # a helper must say so when it has done
            tools = [Tool("complete_task", {"result": {"response": reply.text}})]
        parts += [{"functionCall": {"name": tool.name, "args": tool.input}} for tool in tools]
        return {
            "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": reply.tokens_in,
                "candidatesTokenCount": reply.tokens_out,
                "totalTokenCount": reply.tokens_in + reply.tokens_out,
            },
            "responseId": _name("response"),
        }

    def stream(self, path: str, body: dict[str, Any], reply: Reply, tools: list[Tool]) -> Iterable[str] | None:
        if "streamGenerateContent" not in path:
            return None
        return [f"data: {json.dumps(self.whole(body, reply, tools))}\r\n\r\n"]
