/** Answers of chat servers as the text that dialect `openai` reads. */
import { OpenAiMessage, OpenAiStream, wholeAnswer } from "@rolldeck/agent/core/dialects/openai-stream";
import { openAiTurnText } from "@rolldeck/agent/core/dialects/openai-turn";
import type { ChatText } from "@rolldeck/backends/openai/chat-text";

export const chatText: ChatText = {
  whole: (message) => openAiTurnText(wholeAnswer(OpenAiMessage.parse(message))),
  stream: (toolNames) => {
    const answer = new OpenAiStream(toolNames);
    return {
      push: (delta) => answer.push(OpenAiMessage.parse(delta)),
      text: () => openAiTurnText(answer.answer()),
    };
  },
};
