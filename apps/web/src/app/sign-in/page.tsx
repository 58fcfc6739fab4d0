import type { JSX } from "react";
import { CodeBlock } from "../../design/copy-text.tsx";

export default function SignInPage(): JSX.Element {
  return (
    <main className="mx-auto flex max-w-[480px] flex-col gap-4 px-4 py-24">
      <h1 className="text-xl font-semibold">Sign in to Rolldeck</h1>
      <p className="text-g8">
        This browser has no session. Open the one-time link that <code className="mono">npm start</code> printed, or
        make a new one in the project folder:
      </p>
      <CodeBlock label="Sign-in command" text="npx rolldeck login-url" />
      <p className="text-g8">
        A link works once, for ten minutes. If you came here by a link, it was used already or has run out: make
        another.
      </p>
    </main>
  );
}
