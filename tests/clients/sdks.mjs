// The SDKs of OpenAI and Anthropic for JavaScript, pointed at a gateway: what an agent written with them gets.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { serve } from "./commands.mjs";

const told = (error) => ({ name: error.constructor.name, status: error.status ?? null, message: error.message });

async function trying(work) {
  try {
    return await work();
  } catch (error) {
    return { error: told(error) };
  }
}

serve({
  chat: ({ url, key, body }) => trying(async () => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
    if (!body.stream) return { message: (await client.chat.completions.create(body)).choices[0].message };
    const { stream, ...rest } = body;
    const runner = client.chat.completions.stream(rest);
    return { message: (await runner.finalChatCompletion()).choices[0].message };
  }),
  messages: ({ url, key, body }) => trying(async () => {
    const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
    if (!body.stream) return { message: await client.messages.create(body) };
    const { stream, ...rest } = body;
    return { message: await client.messages.stream(rest).finalMessage() };
  }),
});
