//! Every limit of the engine by name. None of them is a promise; all of them are bounds.
