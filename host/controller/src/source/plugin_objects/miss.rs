//! What a look says about the version that is asked for when it found none that loads, and what that means for one that is tried. Pure.

use super::{content::NoComponent, digest_text, rollout};
use crate::{
    api::{PluginSpec, RolloutPhase, RolloutStatus},
    source::loader::NotLoaded,
};

/// A look that found no version that loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The digest of what the source has, hexadecimal digits; none if it gave nothing.
    pub found: Option<String>,
    /// Whether that is a component that does not load, or may not.
    pub is_refused: bool,
    /// Whether it asks for more than is granted.
    pub is_not_granted: bool,
    /// Whether it may pass by itself.
    pub is_passing: bool,
}

impl Miss {
    /// The source gave no component that counts.
    pub fn no_component(found: &NoComponent) -> Self {
        let is_passing = found.why.is_passing();
        Self { found: found.found.clone(), is_refused: false, is_not_granted: false, is_passing }
    }

    /// It gave one with this digest, which is not loaded.
    pub fn not_loaded(digest: &str, why: &NotLoaded) -> Self {
        let is_not_granted = matches!(why, NotLoaded::NotGranted(_));
        Self { found: Some(digest.to_owned()), is_refused: true, is_not_granted, is_passing: why.is_passing() }
    }

    /// Whether the version of this digest may be what is asked for: what `spec.digest` names, or else what the source has. What gives nothing
    /// says nothing.
    pub fn may_ask_for(&self, spec: &PluginSpec, digest: &str) -> bool {
        let named = spec.digest.as_deref().and_then(digest_text::digits);
        named.or(self.found.as_deref()).is_none_or(|asked| asked == digest)
    }

    /// What is left of a version that is tried, or was taken back. It goes on only while it may be what is asked for, and may answer objects.
    pub fn left_of(&self, spec: &PluginSpec, rollout: RolloutStatus) -> Option<RolloutStatus> {
        let digest = rollout::digest_of(&rollout);
        let may_go_on = match rollout.phase {
            RolloutPhase::RolledBack => true,
            RolloutPhase::Progressing => !self.is_not_granted && rollout::may_answer(spec, digest),
        };
        (may_go_on && self.may_ask_for(spec, digest)).then_some(rollout)
    }

    /// Whether a version may yet be tried of which that has not begun.
    pub fn may_begin(&self, spec: &PluginSpec, digest: &str) -> bool {
        !self.is_refused && self.may_ask_for(spec, digest) && rollout::may_answer(spec, digest)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use serde_json::{Value, json};

    use super::*;
    use crate::source::plugin_objects::config_digest;

    const TRIED: &str = "tried";

    fn spec(digest: Option<&str>, rollout: &Value) -> Result<PluginSpec, serde_json::Error> {
        let digest = digest.map(digest_text::text);
        serde_json::from_value(json!({
            "source": {"configMap": {"name": "web"}}, "digest": digest, "config": {"a": 1}, "rollout": rollout,
        }))
    }

    fn rollout(phase: &str) -> Result<RolloutStatus, serde_json::Error> {
        serde_json::from_value(json!({
            "phase": phase, "digest": digest_text::text(TRIED), "version": "2", "step": 1, "steps": 1, "since": "",
            "createdUntil": "", "objects": 1, "failing": 0, "failingBefore": 0, "notReadyBefore": 0,
        }))
    }

    fn miss(found: Option<&str>) -> Miss {
        let is_refused = found.is_some();
        Miss { found: found.map(str::to_owned), is_refused, is_not_granted: false, is_passing: false }
    }

    #[test]
    fn a_version_is_tried_only_while_it_may_be_what_is_asked_for() -> Result<(), Box<dyn Error>> {
        for (what, found, named, goes_on) in [
            ("the source gives nothing", None, None, true),
            ("the source has it, and refuses something else", Some(TRIED), None, true),
            ("the source has another one", Some("other"), None, false),
            ("it is named", None, Some(TRIED), true),
            ("it is named, and the source has another one", Some("other"), Some(TRIED), true),
            ("another one is named", None, Some("other"), false),
            ("another one is named, and the source has it", Some(TRIED), Some("other"), false),
        ] {
            let spec = spec(named, &json!({}))?;
            for phase in ["Progressing", "RolledBack"] {
                let left = miss(found).left_of(&spec, rollout(phase)?);
                assert_eq!(left.is_some(), goes_on, "{what}: {phase}");
            }
        }
        Ok(())
    }

    #[test]
    fn a_version_that_may_not_work_is_not_tried() -> Result<(), Box<dyn Error>> {
        let gate = |approved: &str, config: Option<String>| json!({"plan": "Require", "approved": digest_text::text(approved), "approvedConfig": config});
        let present = config_digest::of_text(Some(r#"{"a": 1}"#));
        for (what, rollout_spec, goes_on) in [
            ("approved with any configuration", gate(TRIED, None), true),
            ("approved with the present one", gate(TRIED, Some(present)), true),
            ("approved with another one", gate(TRIED, Some(config_digest::of_text(None))), false),
            ("another one is approved", gate("other", None), false),
        ] {
            let (spec, miss) = (spec(None, &rollout_spec)?, miss(None));
            assert_eq!(miss.left_of(&spec, rollout("Progressing")?).is_some(), goes_on, "{what}");
            assert_eq!(miss.may_begin(&spec, TRIED), goes_on, "{what}");
            assert!(miss.left_of(&spec, rollout("RolledBack")?).is_some(), "{what}");
        }
        let spec = spec(None, &json!({}))?;
        let refused = miss(Some(TRIED));
        assert!(!refused.may_begin(&spec, TRIED), "it is refused");
        let not_granted = Miss { is_not_granted: true, ..refused };
        assert_eq!(not_granted.left_of(&spec, rollout("Progressing")?), None);
        Ok(())
    }
}
