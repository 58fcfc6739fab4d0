/** OpenAI's own client, as people write it against a server of ours. */
import OpenAI from "openai";

export const openAiClient = (baseURL: string, apiKey: string): OpenAI => new OpenAI({ baseURL, apiKey, maxRetries: 0 });
