//! A request for a completion and its answer, as OpenAI's API has them. The text continues a prompt with its own words.

use serde_json::{Value, json};

/// The most words of an answer, if nobody says.
const MAX_TOKENS: u64 = 16;

/// A request that can be answered.
pub struct Completion {
    model: String,
    prompt: String,
    /// How many words the answer has.
    pub max_tokens: u64,
}

/// Why a request is refused.
pub struct Refusal {
    /// The status code.
    pub status: u16,
    /// A sentence.
    pub message: String,
}

impl Completion {
    /// Reads a request for a model that is served under this name.
    ///
    /// # Errors
    /// Another model, or no request at all.
    pub fn read(body: &[u8], served: &str) -> Result<Self, Refusal> {
        let request: Value = serde_json::from_slice(body)
            .map_err(|error| Refusal { status: 400, message: format!("this is no JSON: {error}") })?;
        let model = request["model"].as_str().unwrap_or(served).to_owned();
        if model != served {
            return Err(Refusal { status: 404, message: format!("The model `{model}` does not exist.") });
        }
        let Some(prompt) = request["prompt"].as_str().map(str::to_owned) else {
            return Err(Refusal { status: 400, message: "the prompt is missing".to_owned() });
        };
        Ok(Self { model, prompt, max_tokens: request["max_tokens"].as_u64().unwrap_or(MAX_TOKENS) })
    }

    /// The answer.
    pub fn answer(&self) -> Value {
        let words: Vec<_> = self.prompt.split_whitespace().collect();
        let count = usize::try_from(self.max_tokens).unwrap_or(usize::MAX).min(words.len() * 16);
        let text: String = words.iter().cycle().take(count).map(|word| format!(" {word}")).collect();
        let usage = json!({
            "prompt_tokens": words.len(), "completion_tokens": count, "total_tokens": words.len() + count,
        });
        json!({
            "id": "cmpl-1", "object": "text_completion", "model": self.model, "usage": usage,
            "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": "length"}],
        })
    }
}
